"""How much agents may say with their tools: the journal keeps all of it, and others have to read it."""

from iterdev.core.formatting import counted

TEXT_LIMIT = 4_000
"""Characters of a summary, or of the name of a resource."""
DATA_LIMIT = 64 * 1024
"""Bytes of the data of a message or of a discovery."""
MESSAGES = 20_000
"""Messages of a session beyond which its agents send none."""
LOCKS = 200
"""Resources that one task may hold."""


def excess(what: str, text: str, data: bytes = b"") -> str:
    """Why a text with its data cannot be taken; empty if it can."""
    if len(text) > TEXT_LIMIT:
        return f"The {what} has {counted(len(text), 'character')}, and at most {TEXT_LIMIT} are possible."
    if len(data) > DATA_LIMIT:
        size = counted(len(data), "byte")
        return f'The "data" has {size}, and at most {DATA_LIMIT} are possible; name a file instead.'
    return ""
