"""The pure part: plan, decide, apply. No clock, disk, process or randomness."""
