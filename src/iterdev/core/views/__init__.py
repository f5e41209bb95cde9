"""What every surface shows."""
