"""The server through which agents reach the team's tools."""
