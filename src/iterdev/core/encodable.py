"""Text that can be stored: what UTF-8 cannot encode, such as half of a surrogate pair, is written as an escape.

Arguments of commands, names of files and the JSON of agents may contain it; the journal and text files cannot.
"""


def encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def encodable_document(document: object) -> object:
    """The same for every string of a decoded JSON document."""
    match document:
        case str():
            return encodable(document)
        case dict():
            return {encodable_document(key): encodable_document(value) for key, value in document.items()}
        case list() | tuple():
            return [encodable_document(value) for value in document]
        case _:
            return document
