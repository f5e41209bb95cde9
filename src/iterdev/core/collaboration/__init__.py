"""What tasks share: messages, locks, checkpoints, feedback, debt, wisdom, packages."""
