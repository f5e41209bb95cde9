"""One module for each outside thing: git, processes, test suites, secrets, the clock."""
