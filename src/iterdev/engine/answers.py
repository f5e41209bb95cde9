"""What a tool answers, to an agent as to a person: a document, or a refusal."""

Document = dict[str, object]


class Refused(Exception):
    """A call that cannot be granted; the text tells the caller what to do about it."""
