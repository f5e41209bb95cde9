"""External packages, one module per ecosystem."""
