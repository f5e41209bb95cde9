"""Attempts on other machines: hosts, the key that they share with engines, and what is wrong with them."""
