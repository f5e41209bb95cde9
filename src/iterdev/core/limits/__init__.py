"""Budgets, providers, and what is done about agents that fail."""
