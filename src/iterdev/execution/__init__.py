"""One attempt, on any host; knows no journal and no loop."""
