"""A till: carts, totals and receipts."""

from till.cart import receipt, total
from till.money import as_text

__all__ = ["as_text", "receipt", "total"]
