"""The sandbox for agents, setup and tests."""
