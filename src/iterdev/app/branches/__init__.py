"""What can be done with the branches of sessions: see a change, bring it up to date, remove what is not needed."""
