"""Changes of the user's branch and checkout: accepting work, taking it back, and what was cut off."""
