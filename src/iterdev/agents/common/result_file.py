"""Where an agent leaves its result: in a file, or as the last JSON object of a text."""

import codecs
import json
import os
import stat

import msgspec

from iterdev.core.results import Usage

RESULT_LIMIT = 16 * 1024 * 1024

MIN_TOO_DEEP = 500
"""Characters that an object has at the very least when the decoder gives up on its depth."""

# A float takes a number of any length, where an int refuses more than 4300 digits.
DECODER = json.JSONDecoder(parse_int=float)


def read_result(path: str) -> bytes | None:
    """The content of a result file, cut at the limit and without a byte order mark; a blank file counts as absent."""
    try:
        # A link could lead to what the agent itself must not read, and a pipe would block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
        body = file.read(RESULT_LIMIT).removeprefix(codecs.BOM_UTF8)
    return body if body.strip() else None


class _Report(msgspec.Struct, frozen=True):
    usage: Usage | None = None


def reported_usage(body: bytes) -> Usage:
    """What a program says in its result that it has used."""
    try:
        return msgspec.json.decode(body, type=_Report).usage or Usage()
    except (ValueError, RecursionError):
        return Usage()


def last_json_object(text: bytes | bytearray) -> bytes | None:
    """Finds the last whole JSON object among lines of any kind; the parts of an object do not count.

    What a failed try has read is not read again, so that the time grows with the length of the text only.
    """
    source, place, last = text.decode(errors="replace"), 0, None
    while (start := source.find("{", place)) >= 0:
        if start > 4096:
            # An error counts all lines before its position: 15 s for 256 KiB of braces, unless the text is cut.
            source, start = source[start:], 0
        try:
            _, place = DECODER.raw_decode(source, start)
            last = source[start:place]
        except json.JSONDecodeError as error:
            place = max(error.pos, start + 1)
        except RecursionError:
            place = start + MIN_TOO_DEEP
    return None if last is None else last.encode()
