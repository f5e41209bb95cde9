"""What people and programs see of iterdev."""
