"""What can be done with the branch of a session: see its change, bring it up to date, remove it when it is contained."""
