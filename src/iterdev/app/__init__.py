"""What can be done with iterdev, as functions over values; the only thing that surfaces call."""
