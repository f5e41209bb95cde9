"""Source code in colours: the only HTML that no template makes. Every piece of text in it is escaped here."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from iterdev.core.formatting import plain

MOST_CHARACTERS = 200_000
KINDS = (("Comment", "c"), ("Literal.String", "s"), ("Keyword", "k"), ("Literal.Number", "m"), ("Name.Function", "f"))
"""The kinds of tokens that have a colour, and the classes of the style sheet."""


def highlighted(lines: Sequence[str], file: str) -> list[Markup]:
    """Each line with its tokens in classes; as plain text if the language is not known, or there is too much of it."""
    clean = [plain(line) for line in lines]
    if sum(map(len, clean)) > MOST_CHARACTERS:
        return [escape(line) for line in clean]
    # It is there because rich needs it; it takes a while to load, and only pages with changes use it.
    from pygments.lexers import get_lexer_for_filename  # type: ignore[import-untyped]  # noqa: PLC0415
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]  # noqa: PLC0415

    try:
        lexer = get_lexer_for_filename(file, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return [escape(line) for line in clean]
    made: list[list[Markup]] = [[]]
    for kind, text in lexer.get_tokens("\n".join(clean)):
        style = next((name for begin, name in KINDS if str(kind).removeprefix("Token.").startswith(begin)), "")
        for number, piece in enumerate(text.split("\n")):
            if number:
                made.append([])
            made[-1] += _piece(piece, style)
    whole = [Markup("").join(pieces) for pieces in made]
    # A lexer that adds or drops a line would put colours on the wrong ones.
    return whole if len(whole) == len(clean) else [escape(line) for line in clean]


def _piece(text: str, style: str) -> Iterator[Markup]:
    if text:
        yield Markup('<span class="t{}">{}</span>').format(style, text) if style else escape(text)
