"""Ids and how they are made: slugs, session ids, task ids, branches, refs."""

import re
import string
import unicodedata
from collections.abc import Collection
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import chain, count

from iterdev.core.types import Engine, SessionId, TaskId

ZONE = timezone(timedelta(hours=8))
"""Dates in ids, and times in files, are in UTC+8, as in the documents this product comes from."""

CONFLICT_FIX = "-fix-conflict"
"""Ends the id of a task that resolves a conflict."""
UPDATE = "UPDATE"
"""The prefix of a task that brings the user's branch into the session."""
CHINESE = "\u4e00-\u9fa5"
"""The Chinese characters, as a range inside of a regular expression's brackets."""

_SEPARATORS = re.compile(f"[^a-z0-9{CHINESE}]+")
_ACCENTS = re.compile("[\u0300-\u036f]")
_LETTERS = str.maketrans({"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"})  # noqa: RUF001 - letters that look alike
"""Letters that Unicode does not decompose into a letter and an accent."""
_ROOTS = {Engine.wave: ".workflow/.csv-wave", Engine.beat: ".workflow/.team"}


def slug(text: str, limit: int = 40) -> str:
    """Lower-case letters without accents, digits and Chinese characters; all between them becomes one dash."""
    letters = _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold()).translate(_LETTERS)
    return _SEPARATORS.sub("-", letters)[:limit].strip("-")


def session_id(prefix: str, words: str, engine: Engine, at: float, taken: Collection[str] = ()) -> SessionId:
    """The id of a new session; a second one of the same name and day gets `-2`, the next `-3`."""
    date = datetime.fromtimestamp(at, ZONE).strftime("%Y%m%d" if engine is Engine.wave else "%Y-%m-%d")
    stem = "-".join(part for part in (prefix, words, date) if part)
    names = chain([stem], (f"{stem}-{number}" for number in count(2)))
    return SessionId(next(name for name in names if name not in taken))


def folder(engine: Engine, session: SessionId) -> str:
    """The session folder, relative to the top of the repository."""
    return f"{_ROOTS[engine]}/{session}"


def branch(session: SessionId) -> str:
    return f"iterdev/{session}"


def kept_ref(session: str, task: str, number: int) -> str:
    """The ref that keeps the work of an attempt, whatever happens to the attempt."""
    return f"refs/iterdev/{session}/{task}/{number}"


def shared_name(session: str, suffix: str) -> str:
    """The name of a session on a git remote, a Temporal server and hosts, which several engines may share."""
    return f"{session}@{suffix}"


def tip_ref(session: SessionId) -> str:
    """The ref that keeps what has landed, whatever happens to the branch. No task id begins like its last part."""
    return f"refs/iterdev/{session}/_tip"


def moved_ref(session: SessionId, commit: str) -> str:
    """The ref that keeps where the branch was when it did not have all that had landed."""
    return f"refs/iterdev/{session}/_moved/{commit[:12]}"


def accepting_ref(session: SessionId) -> str:
    """The ref that exists while the session's work is merged into the user's branch, at where that branch was."""
    return f"refs/iterdev/{session}/_accepting"


def incoming_ref(session: SessionId, name: str = "") -> str:
    """A ref that exists during that merge, with what is merged; without a name, the common prefix of these refs."""
    return f"refs/iterdev/{session}/_incoming/{name}"


def session_trailer(session: SessionId) -> str:
    """The line by which a commit names its session."""
    return f"Iterdev-Session: {session}"


def prefix_of(task: str) -> str:
    """The prefix of a task id, such as `DEV` of `DEV-001` and of `DEV-fix-1`; empty if there is none."""
    found = re.match(r"(.+?)-(?:\d|fix)", task)
    return found[1] if found else ""


def number_of(task: str) -> str:
    """The digits at the end of a task id, for naming its documents."""
    stem = task.rstrip(string.digits)
    return task[len(stem) :] or task


def next_id(prefix: str, existing: Collection[str]) -> TaskId:
    """The next free id of a prefix; one counter for the whole session, so that no id is ever used twice."""
    numbered = re.compile(rf"{prefix}-(\d{{1,120}})")
    taken = [int(found[1]) for task in existing if (found := numbered.fullmatch(task))]
    number = max(taken, default=0) + 1
    return TaskId(f"{prefix}-{number}" if "-fix" in prefix else f"{prefix}-{number:03d}")


def timed_id(prefix: str, at: float, taken: Collection[str] = ()) -> str:
    """An id made from a time: milliseconds in base 36; if it is taken, the next free one."""
    # A clock can be before 1970.
    names = (f"{prefix}-{_base36(number)}" for number in count(max(0, round(at * 1000))))
    return next(name for name in names if name not in taken)


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = string.digits[digit] + digits if digit < 10 else string.ascii_lowercase[digit - 10] + digits
    return digits or "0"


def moment(at: float, zone: tzinfo = ZONE) -> str:
    """A point in time as text, to the second, with the offset that the zone has then."""
    return datetime.fromtimestamp(at, UTC).astimezone(zone).isoformat(timespec="seconds")
