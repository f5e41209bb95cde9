"""Messages to the user about what needs them: one when a need appears, one when it is gone, and bursts as one."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from iterdev.core.formatting import counted, one_line
from iterdev.core.results import shortened
from iterdev.core.session.delivery import Notified
from iterdev.core.session.gates import GateKind
from iterdev.core.types import NotificationKind, SessionId
from iterdev.core.views.attention import Need, NeedKind

MOST, WINDOW = 3, 10.0
"""More messages than this within so many seconds become one."""
TEXT = 500
"""Characters of a message."""
SEVERAL = "several"
NAMES = frozenset(kind.value for kind in NotificationKind)


class Notification(Struct, frozen=True, kw_only=True):
    session: SessionId
    kind: str
    """A `NotificationKind`, or `several`."""
    text: str
    commands: tuple[str, ...] = ()
    """What can be pasted, the likeliest first."""
    is_over: bool = False
    """The need is gone."""
    needs: Mapping[str, str] = {}
    """What the message is about: the text of each need, by what identifies it."""
    gone: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"iterdev: {self.kind}{' (over)' if self.is_over else ''}"

    @property
    def lines(self) -> str:
        """The message for people: what it is about, the session, and the likeliest command."""
        return "\n".join((self.text, self.session, *self.commands[:1]))

    @property
    def event(self) -> Notified:
        return Notified(self.needs, self.gone)

    def document(self, at: float) -> dict[str, object]:
        """For programs."""
        return {
            "session": self.session,
            "kind": self.kind,
            "state": "over" if self.is_over else "open",
            "text": self.text,
            "commands": list(self.commands),
            "time": at,
        }


def changes(
    session: SessionId, needs: Iterable[Need], notified: Mapping[str, str], kinds: Collection[NotificationKind]
) -> tuple[Notification, ...]:
    """What is new since the user was told last. A need that came and went in between is no message."""
    known = {_key(need): need for need in needs}
    gone = [_over(session, key, text) for key, text in notified.items() if key not in known]
    new = ((key, need) for key, need in known.items() if key not in notified)
    return *gone, *(_open(key, need, kind) for key, need in new if (kind := _kind(need)) in kinds)


def due(waiting: Sequence[Notification], sent: Sequence[float], now: float) -> tuple[Notification, ...]:
    """What is sent now, given when messages were sent: each, or all as one; nothing while a burst lasts."""
    recent = [at for at in sent if now - WINDOW < at <= now]
    if len(recent) + len(waiting) <= MOST:
        return tuple(waiting)
    return () if recent else (joined(waiting),)


def joined(waiting: Sequence[Notification]) -> Notification:
    """Several messages as one."""
    if len(waiting) == 1:
        return waiting[0]
    texts = (f"{one.kind}{' (over)' if one.is_over else ''}: {one.text}" for one in waiting)
    session = waiting[0].session
    return Notification(
        session=session,
        kind=SEVERAL,
        text=shortened(f"{counted(len(waiting), 'message')}: {'; '.join(texts)}", TEXT),
        commands=(f"iterdev status {session}",),
        is_over=all(one.is_over for one in waiting),
        needs={key: text for one in waiting for key, text in one.needs.items()},
        gone=tuple(key for one in waiting for key in one.gone),
    )


def _kind(need: Need) -> NotificationKind | None:
    if need.kind is NeedKind.question:
        is_budget = need.gate.startswith(GateKind.budget)
        return NotificationKind.budget if is_budget else NotificationKind.question
    return NotificationKind(need.kind) if need.kind.value in NAMES else None


def _key(need: Need) -> str:
    """The same for as long as the need lasts; a question that is asked again is another one."""
    if need.kind is NeedKind.question:
        return f"{need.kind} {need.gate} {need.since:.3f}"
    return f"{need.kind} {need.about}"


def _open(key: str, need: Need, kind: NotificationKind | None) -> Notification:
    text = shortened(one_line(need.text), TEXT)
    return Notification(
        session=need.session, kind=kind or need.kind, text=text, commands=need.commands, needs={key: text}
    )


def _over(session: SessionId, key: str, text: str) -> Notification:
    kind = key.partition(" ")[0]
    return Notification(session=session, kind=kind, text=f"No longer: {text}", is_over=True, gone=(key,))
