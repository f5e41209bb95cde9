"""Notices when the user's checkout changes while agents work."""

from pathlib import Path
from threading import Lock

from iterdev.host.git import checkout, refs


class CheckoutWatch:
    """The user's own checkout: looked at, never touched."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self._lock = Lock()
        self._stamp: tuple[object, ...] = ()
        self._branches: list[str] = []
        self._seen = self._look()

    def news(self) -> list[str]:
        """Files and branches that changed since the last look; agents have no business there."""
        with self._lock:
            before, self._seen = self._seen, self._look()
        return sorted(entry[3:] for entry in self._seen - before)

    def _look(self) -> frozenset[str]:
        files = (entry for entry in checkout.status(self._top).split("\0") if entry)
        stamp = refs.branches_stamp(self._top)
        if stamp != self._stamp:
            self._stamp, self._branches = stamp, refs.branches(self._top)
        return frozenset((*files, *(f"   branch {branch}" for branch in self._branches)))
