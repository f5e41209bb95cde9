"""What one page of a dashboard shows."""
