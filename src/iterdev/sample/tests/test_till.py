import unittest

from till import as_text, receipt, total

BREAD, MILK = ("bread", 349, 1), ("milk", 119, 2)


class Total(unittest.TestCase):
    def test_an_empty_cart_costs_nothing(self):
        self.assertEqual(total([]), 0)

    def test_prices_are_multiplied_by_quantities(self):
        self.assertEqual(total([BREAD, MILK]), 587)

    def test_a_negative_quantity_is_refused(self):
        with self.assertRaises(ValueError):
            total([("bread", 349, -1)])


class Receipt(unittest.TestCase):
    def test_every_item_has_a_line(self):
        self.assertEqual(receipt([BREAD, MILK]).splitlines()[:2], ["1 x bread 3.49", "2 x milk 2.38"])

    def test_the_last_line_is_the_total(self):
        self.assertEqual(receipt([BREAD, MILK]).splitlines()[-1], "total 5.87")


class Money(unittest.TestCase):
    def test_cents_below_ten_have_a_zero_in_front(self):
        self.assertEqual(as_text(1205), "12.05")


if __name__ == "__main__":
    unittest.main()
