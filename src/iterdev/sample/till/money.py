"""Money is whole cents; only here do cents become text."""


def as_text(cents):
    """12.05 for 1205 cents."""
    return f"{cents // 100}.{cents % 100:02}"
