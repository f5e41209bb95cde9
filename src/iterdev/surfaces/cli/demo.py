"""The demo: the whole team on a bundled sample, with scripted agents, in a scratch repository."""


def demo() -> int:
    return 0
