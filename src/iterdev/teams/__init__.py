"""Teams: what each one plans, judges and says. A session has one; the kernel does not know which."""
