"""Parses INI files that anybody may have written: of one that is wrong, what could be read counts."""

import configparser
from contextlib import suppress
from itertools import islice

MOST_LINES = 5_000
"""The parser's time grows with the square of the lines that it cannot read."""


def parse(text: str) -> configparser.ConfigParser:
    document = configparser.ConfigParser(interpolation=None, strict=False)
    with suppress(configparser.Error):
        document.read_file(islice(text.splitlines(keepends=True), MOST_LINES))
    return document
