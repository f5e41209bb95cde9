"""Parses TOML that anybody may have written: what would take without end is refused."""

import re
import tomllib

MOST_LEVELS = 64
"""Tables and lists inside of each other."""
_LONG_KEY = re.compile(
    # The parser's time grows with the square of the parts of a key.
    r"""(?<![\w"'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){200}"""
)


def parse(text: str) -> dict[str, object]:
    """The document; raises ValueError."""
    if _LONG_KEY.search(text):
        raise ValueError("a key has more than 200 parts")
    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if _is_deep(document):
        raise ValueError("it is nested too deeply")
    return document


def _is_deep(document: object) -> bool:
    level = [document]
    for _ in range(MOST_LEVELS):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return any(isinstance(inner, dict | list) for inner in level)
