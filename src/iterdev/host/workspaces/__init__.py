"""Workspaces: git worktrees that attempts borrow."""
