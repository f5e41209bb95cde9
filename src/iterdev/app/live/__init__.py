"""Sessions while they run: engines in the background, and what other processes see of them."""
