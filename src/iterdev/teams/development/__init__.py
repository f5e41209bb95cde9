"""The development team: architect, developer, tester, reviewer."""
