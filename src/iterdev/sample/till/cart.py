"""A cart is a list of (name, price in cents, quantity)."""

from till.money import as_text


def total(cart):
    """The price of everything in the cart, in cents."""
    if any(quantity < 0 for _, _, quantity in cart):
        raise ValueError("a quantity is negative")
    return sum(price * quantity for _, price, quantity in cart)


def receipt(cart):
    """One line per item, and the total at the end."""
    lines = [f"{quantity} x {name} {as_text(price * quantity)}" for name, price, quantity in cart]
    return "\n".join([*lines, f"total {as_text(total(cart))}"])
