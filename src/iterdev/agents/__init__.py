"""Programs that do the work, each behind the same small contract."""
