"""What an act would do, before it does it."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from msgspec.structs import replace
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from iterdev.app.live.acts import Accept, Act, AnyPreview, command
from iterdev.core.formatting import counted, shown_name
from iterdev.core.views.previews import (
    AcceptPreview,
    ArchivePreview,
    CleanItem,
    CleanPreview,
    ExportPreview,
    PullRequestPreview,
    ReopenPreview,
    ResumePreview,
    RetryPreview,
    RollbackPreview,
)
from iterdev.surfaces.tui import render
from iterdev.surfaces.tui.lines import Lines
from iterdev.surfaces.tui.palette import line
from iterdev.surfaces.tui.screens.view import Dialog

NAMED = 12
"""Files or tasks that are listed."""


def preview_lines(preview: AnyPreview, width: int) -> Iterator[Text]:
    """What is known about the effect, in full sentences."""
    match preview:
        case AcceptPreview():
            yield from _accepted(preview, width)
        case RetryPreview():
            yield from _named("will be done again", preview.again, width)
            yield from _named("will join the table", preview.added, width)
            if preview.follows:
                yield from render.wrapped("the team adds what is needed when the session continues", width)
        case ResumePreview():
            yield from render.wrapped(f"{counted(preview.left, 'task')} left to do", width)
            yield from _named("was cut off, and continues with what it had done", preview.interrupted, width)
        case RollbackPreview():
            yield from _rolled_back(preview, width)
        case ArchivePreview():
            yield from render.wrapped(f"{preview.branch} stays, with everything that landed", width)
            if preview.unaccepted:
                yield from render.wrapped("it has work that your branch does not have", width, "attention")
        case ReopenPreview():
            yield from render.wrapped(f"the session is active again, with what landed on {preview.branch}", width)
        case ExportPreview():
            yield from _named(f"goes to {preview.target}", preview.names, width)
            yield from render.wrapped("then the session is archived", width)
        case PullRequestPreview():
            yield from render.wrapped(f"{preview.branch} is pushed; {preview.title}, into {preview.base}", width)
            if preview.known:
                yield from render.wrapped(f"{preview.known} is brought up to date", width)
        case CleanPreview():
            yield from _cleaned("goes", preview.removed, width)
            yield from _cleaned("stays", preview.kept, width)
            yield from render.wrapped("the session folder and the journal stay", width)
        case _:
            assert_never(preview)


def _rolled_back(preview: RollbackPreview, width: int) -> Iterator[Text]:
    yield from _named("will be done again", preview.again, width)
    yield from _named("will be removed from the table", preview.removed, width)
    if preview.to:
        moved = f"{preview.branch} moves {preview.tip[:7]} → {preview.to[:7]}; what is on it stays kept"
        yield from render.wrapped(moved, width)
    if preview.accepted:
        yield from render.wrapped(f"your branch keeps what was accepted: {preview.accepted[:12]}", width, "attention")


def _accepted(preview: AcceptPreview, width: int) -> Iterator[Text]:
    how = "only moves forward" if preview.fast_forward else "gets a merge commit"
    count = f"{counted(preview.commits, 'commit')}, {counted(len(preview.files), 'file')}"
    yield from render.wrapped(f"{count} into {preview.into}, which {how}", width, "strong")
    yield from (line((f"  {shown_name(name)}", "text")) for name in preview.files[:NAMED])
    yield from _more(preview.files)
    for text in preview.verdicts:
        yield from render.wrapped(text, width, "done" if not preview.reasons else "text")
    for text in preview.warnings:
        yield from render.wrapped(f"Warning: {text}", width, "attention")
    for text in preview.reasons:
        yield from render.wrapped(f"Not good: {text}", width, "failed")


def _cleaned(what: str, items: tuple[CleanItem, ...], width: int) -> Iterator[Text]:
    for item in items[:NAMED]:
        yield from render.wrapped(f"{what}: {shown_name(item.name)}, because {item.why}", width)
    yield from _more([item.name for item in items])


def _named(what: str, names: tuple[str, ...], width: int) -> Iterator[Text]:
    if names:
        yield from render.wrapped(f"{what}: {', '.join(names[:NAMED])}", width)
        yield from _more(names)


def _more(names: Iterable[str]) -> Iterator[Text]:
    rest = len(list(names)) - NAMED
    if rest > 0:
        yield line((f"  and {rest} more", "muted"))


class PreviewScreen(Dialog):
    def __init__(self, act: Act, preview: AnyPreview, notice: str = "") -> None:
        super().__init__()
        self._act, self._preview, self._notice = act, preview, notice

    @property
    def _needs_force(self) -> bool:
        """The work is not known to be good, and has to be asked for by another key."""
        return (
            isinstance(self._act, Accept) and isinstance(self._preview, AcceptPreview) and bool(self._preview.reasons)
        )

    def compose(self) -> ComposeResult:
        self.lines: Lines[Text] = Lines(lambda text, _: text, has_cursor=False)
        box = Vertical(self.lines, id="box")
        box.border_title = type(self._act).__name__.lower()
        todo = "f accept anyway" if self._needs_force else "Enter do it"
        box.border_subtitle = "Esc close" if self._preview.refused else f"{todo} · Esc cancel"
        yield box

    def on_mount(self) -> None:
        width = self.room
        rows = [*render.wrapped(self._notice, width, "attention")]
        if refused := self._preview.refused:
            rows += [*render.wrapped(refused.problem, width, "failed")]
            rows += [*render.wrapped(f"hint: {refused.hint}" if refused.hint else "", width, "accent")]
        rows += [*preview_lines(self._preview, width), line(), *render.wrapped(command(self._wanted), width, "accent")]
        self.lines.show(rows, whole=True)
        self.lines.focus()

    @property
    def _wanted(self) -> Act:
        return replace(self._act, force=True) if self._needs_force and isinstance(self._act, Accept) else self._act

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        confirmed = event.key == "f" if self._needs_force else event.key in {"enter", "y"}
        if confirmed and self._preview.refused is None:
            self.dismiss()
            self.dashboard.perform(self._wanted, self._preview)
        elif event.key in {"escape", "q", "n"}:
            self.dismiss()
