"""What failures of agents have in common: how words are read as kinds of trouble, and how each kind is put."""

import re
from collections.abc import Mapping

from iterdev.agents.contract import TroubleKind

FAILURES: Mapping[TroubleKind, str] = {
    TroubleKind.not_logged_in: "is not logged in",
    TroubleKind.limited: "has reached a limit of its provider",
    TroubleKind.overloaded: "got no answer from its provider",
    TroubleKind.too_long: "was given more than fits into its context",
    TroubleKind.over_budget: "has used up its budget",
}


class Meanings:
    """Expressions by kind of trouble. The order decides: the words of one kind may name what another is about."""

    def __init__(self, expressions: Mapping[TroubleKind, str]) -> None:
        self._patterns = {kind: re.compile(words, re.IGNORECASE) for kind, words in expressions.items()}

    def of(self, words: str) -> TroubleKind | None:
        return next((kind for kind, pattern in self._patterns.items() if pattern.search(words)), None)
