"""What the screens show, as lines of text: functions of a frame, a time and a width."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct
from rich.text import Text

from iterdev.core.formatting import duration, one_line, plain
from iterdev.core.types import Status, TaskId
from iterdev.core.views.attention import Need, NeedKind
from iterdev.core.views.history import PastAttempt
from iterdev.core.views.session import SessionLine, SessionView, WaveView
from iterdev.core.views.tasks import GLYPHS, TaskView
from iterdev.core.views.timeline import Bar, Mark, Row, Timeline, clock_text
from iterdev.surfaces.tui.palette import OF_NEED, OF_OUTCOME, OF_STATUS, line, style_of
from iterdev.surfaces.tui.source import Frame

WIDE, NARROW = 100, 60
"""Columns from which there is a right half, and below which only state, task and note are shown."""
SHORTEST = 12
"""Columns that the name of a session keeps."""
AGENT, WITH_AGENT = 8, 80
"""Columns for the name of an agent, and of the table from which it is shown."""


def head(frame: Frame, now: float, width: int) -> Text:
    """The repository, the session and where it stands; at the right what needs the user, and the entry shown."""
    view = frame.session
    if view is None:
        return line((f" {frame.repository} ", "strong"), ("no sessions yet", "muted"))
    facts = [
        view.team.position,
        view.team.note,
        f"{view.counts[Status.completed]}/{sum(view.counts.values())}",
        _elapsed(frame, now),
        f"${view.usage.cost_usd:.2f}" if view.usage.cost_usd else "",
    ]
    told = f" {' · '.join(filter(None, facts))}"
    needs = sum(need.kind is not NeedKind.paused for need in frame.needs)
    asked = f"! {needs} {'needs' if needs == 1 else 'need'} you  " if needs else ""
    right = line((asked, "attention"), _liveness(view), (f" #{view.seq} ", "muted"))
    # The name gives way before the facts do.
    where = f" {frame.repository} " if width >= NARROW + 20 else ""
    room = max(width - right.cell_len - len(told) - len(where) - 4, SHORTEST)
    name = view.id if len(view.id) <= room else f"{view.id[: room - 1]}…"
    return _spread(line((where, "strong"), (f" {name} ", "accent"), told), right, width)


def _spread(left: Text, right: Text, width: int) -> Text:
    room = max(width - right.cell_len - 1, 0)
    left.truncate(room, overflow="ellipsis", pad=True)
    return left.append_text(line(" ")).append_text(right)


def _elapsed(frame: Frame, now: float) -> str:
    """From the first attempt to the last thing that ended, or until now."""
    attempts = frame.history.attempts
    if not attempts or frame.session is None:
        return ""
    ends = [one.ended_at for one in attempts if one.ended_at is not None]
    end = (
        now
        if frame.session.running and not frame.session.outcome.is_over
        else max(ends, default=attempts[-1].started_at)
    )
    return clock_text(end - attempts[0].started_at)


def _liveness(view: SessionView) -> tuple[str, str]:
    """Whether an engine lives, which is never concluded from anything else."""
    if view.gates:
        return ("? asks", "attention") if view.running else ("? asks, no engine", "attention")
    if view.running:
        return "● live", "done"
    if view.branch.accepted:
        return "✓ accepted", "done"
    if view.outcome.is_over:
        return ("✓ done", "done") if view.outcome.succeeded else ("✗ not successful", "failed")
    return "○ no engine", "failed"


class TaskRow(Struct, frozen=True, kw_only=True):
    """One row of the table, with all that it depends on: rows that are equal look the same."""

    task: TaskView
    first: bool
    """It is the first of its wave."""
    time: str
    note: str
    id_width: int


def task_rows(frame: Frame, now: float, words: str = "") -> list[TaskRow]:
    """The tasks of the session that have all the words."""
    view = frame.session
    if view is None:
        return []
    wanted = words.casefold().split()
    shown = [task for task in view.tasks if all(word in _searched(task) for word in wanted)] if wanted else view.tasks
    width = max((len(task.id) for task in shown), default=0)
    rows, wave = [], -1
    for task in shown:
        note = note_of(task, frame.said)
        rows.append(
            TaskRow(task=task, first=task.wave != wave, time=_time(task, now), note=note, id_width=min(width, 24))
        )
        wave = task.wave
    return rows


def _searched(task: TaskView) -> str:
    words = (task.id, task.role, task.title, task.effective_status, task.agent, task.note, f"wave-{task.wave}")
    return " ".join(words).casefold()


def _time(task: TaskView, now: float) -> str:
    if task.started_at is None or task.effective_status is Status.pending:
        return ""
    return clock_text((task.ended_at if task.ended_at is not None else now) - task.started_at)


def note_of(task: TaskView, said: Mapping[TaskId, str]) -> str:
    """The most important fact about a task, in a line."""
    result = task.result
    match task.effective_status:
        case Status.in_progress if task.note.startswith("waits for"):
            return task.note
        case Status.in_progress:
            return said.get(task.id) or task.activity
        case Status.completed if result.conflict:
            return result.conflict
        case Status.completed if result.notes.verdict:
            return f"{result.notes.verdict}  {one_line(result.findings)}"
        case Status.completed:
            return one_line(result.findings) or task.note
        case Status.failed | Status.skipped:
            return one_line(result.error)
        case _:
            return task.note


def task_head(row_width: int, id_width: int) -> Text:
    if row_width < NARROW:
        return line((f"  {'task':<{id_width}}  note", "muted"))
    agent = f"{'agent':<{AGENT}} " if row_width >= WITH_AGENT else ""
    return line((f" w  {'':1} {'task':<{id_width}}  {'role':<10} {agent}{'time':>7}  note", "muted"))


def task_line(row: TaskRow, width: int) -> Text:
    task, style = row.task, style_of(row.task)
    name = (f"{task.id:<{row.id_width}}  ", style if style != "muted" else "text")
    note = (one_line(row.note), "failed" if task.effective_status is Status.failed else "text")
    if task.effective_status is Status.pending:
        note = note[0], "muted"
    if width < NARROW:
        return line((f"{task.glyph} ", style), name, note)
    wave = f"{task.wave:>2}" if row.first else "  "
    agent = [(f"{task.agent[:AGENT]:<{AGENT}} ", "muted")] if width >= WITH_AGENT else []
    parts = [(f"{wave}  ", "muted"), (f"{task.glyph} ", style), name, (f"{task.role[:10]:<10} ", "muted")]
    return line(*parts, *agent, (f"{row.time:>7}  ", "muted"), note)


def waves_line(view: SessionView | None, width: int) -> Text:
    """A glyph for each task of each wave; where there is no room for that, the numbers."""
    if view is None or not view.waves:
        return line()
    drawn = line((" waves ", "muted"))
    for wave in view.waves:
        drawn.append_text(_wave_glyphs(wave))
    if drawn.cell_len <= width:
        return drawn
    current = next((wave.number for wave in view.waves if _is_open(wave)), view.waves[-1].number)
    drawn = line((f" {len(view.waves)} waves ", "muted"))
    for wave in view.waves:
        # As many as there is room for, from the one before the current one.
        if wave.number >= current - 1 and drawn.cell_len < width:
            drawn.append_text(_wave_counts(wave))
    return drawn


def _is_open(wave: WaveView) -> bool:
    return any(count for status, count in wave.counts.items() if not status.is_final)


def _wave_glyphs(wave: WaveView) -> Text:
    parts = [(GLYPHS[status] * count, OF_STATUS[status]) for status, count in wave.counts.items() if count]
    return line((f" {wave.number} ", "muted"), *sorted(parts, key=lambda part: part[0], reverse=True))


def _wave_counts(wave: WaveView) -> Text:
    parts = [(f"{GLYPHS[status]}{count} ", OF_STATUS[status]) for status, count in wave.counts.items() if count]
    return line((f" {wave.number}: ", "muted"), *parts)


def task_lines(frame: Frame, task: TaskView, width: int, *, why: Sequence[str] = ()) -> Iterator[Text]:
    """All that is known of a task: what it is, what it waits for, its attempts and its result."""
    who = "  ".join(filter(None, (task.role, task.agent, task.host and f"on {task.host}", _attempt(task))))
    yield line((f"{task.glyph} {task.id}", style_of(task)), (f"  {who}", "muted"))
    yield from wrapped(task.title, width, "strong")
    if task.deps:
        yield from wrapped(f"after {', '.join(task.deps)}", width, "muted")
    if frame.session and (after := [other.id for other in frame.session.tasks if task.id in other.deps]):
        yield from wrapped(f"before {', '.join(after)}", width, "muted")
    if task.effective_status is Status.pending:
        yield from chain.from_iterable(wrapped(reason, width, "text") for reason in why or [task.note])
    result = task.result
    if result.notes.verdict:
        yield from wrapped(result.notes.verdict, width, style_of(task))
    for text, style in ((result.error, "failed"), (result.conflict, "attention"), (result.findings, "text")):
        yield from wrapped(text, width, style)
    attempts = frame.history.of_task(task.id)
    if attempts:
        yield rule("attempts", width)
    for attempt in attempts:
        yield from attempt_lines(attempt, width)


def _attempt(task: TaskView) -> str:
    return f"attempt {task.attempt}" if task.effective_status in {Status.in_progress, Status.landing} else ""


def attempt_lines(attempt: PastAttempt, width: int) -> Iterator[Text]:
    took = "" if attempt.ended_at is None else clock_text(attempt.ended_at - attempt.started_at)
    tokens = f"{attempt.usage.tokens:,} tokens" if attempt.usage.tokens else ""
    cost = f"${attempt.usage.cost_usd:.2f}" if attempt.usage.cost_usd else ""
    undone = "rolled back" if attempt.undone_at is not None else ""
    commit = attempt.commit[:12] if attempt.commit else ""
    facts = "  ".join(filter(None, (attempt.agent, took, tokens, cost, commit, undone)))
    yield line(
        (f" {attempt.number} ", "muted"), (attempt.outcome, OF_OUTCOME[attempt.outcome]), (f"  {facts}", "muted")
    )
    yield from wrapped(attempt.error, width - 3, "failed", indent="   ")
    for denied in attempt.denied:
        yield from wrapped(f"asked for, and denied: {denied}", width - 3, "attention", indent="   ")


def rule(title: str, width: int) -> Text:
    return line((f"── {title} ".ljust(max(width, 0), "─"), "rule"))


def wrapped(text: str, width: int, style: str = "text", *, indent: str = "") -> Iterator[Text]:
    for paragraph in plain(text).strip().splitlines():
        for part in textwrap.wrap(paragraph, max(width - len(indent), 10), break_on_hyphens=False) or [""]:
            yield line((f"{indent}{part}", style))


def age(since: float, now: float) -> str:
    seconds = max(now - since, 0)
    days = int(seconds // 86400)
    return f"{days} d" if days else duration(seconds) if seconds < 60 else duration(seconds // 60 * 60)


MARKS = {
    NeedKind.question: "?",
    NeedKind.failed: "✗",
    NeedKind.conflict: "✗",
    NeedKind.ready: "✓",
    NeedKind.paused: "~",
}


class NeedRow(Struct, frozen=True, kw_only=True):
    need: Need
    age: str
    requirement: str


def need_rows(frame: Frame, now: float) -> list[NeedRow]:
    known = {one.summary.id: one_line(one.summary.requirement) for one in frame.sessions}
    return [
        NeedRow(need=need, age=age(need.since, now), requirement=known.get(need.session, need.session))
        for need in frame.needs
    ]


def need_line(row: NeedRow, width: int) -> Text:
    need = row.need
    style = OF_NEED.get(need.kind, "attention")
    kind = line((f" {MARKS.get(need.kind, '!')} {need.kind:<10} ", style), (f"{row.age:>9}  ", "muted"))
    about = "" if need.about == "the session" or width < WIDE else f"{need.about}: "
    title = row.requirement if width < NARROW else f"{row.requirement[: width // 3]:<{min(width // 3, 34)}}  "
    return kind.append_text(line((title, "strong"), (f"{about}{one_line(need.text)}", "text")))


class SessionRow(Struct, frozen=True, kw_only=True):
    line: SessionLine
    watched: bool


def session_row_line(row: SessionRow, width: int) -> Text:
    one = row.line.summary
    standing = row.line.standing
    style = "running" if row.line.running else "attention" if one.waiting else "done" if one.accepted else "text"
    style = "failed" if one.outcome and one.outcome != "completed" else style
    mark = "▸" if row.line.running else "?" if one.waiting else "✓" if one.outcome == "completed" else "·"
    parts = [(f" {mark} {standing[:24]:<24} ", style), (f"{one.completed:>4}/{one.tasks:<4} ", "muted")]
    name = (f"{one.id}  ", "accent" if row.watched else "strong")
    return line(*parts, name, (one_line(one.requirement) if width >= WIDE else "", "muted"))


class ChartRow(Struct, frozen=True, kw_only=True):
    """A row of the time line; the first ones are the axis and the marks."""

    label: str
    bars: tuple[Bar, ...] = ()
    marks: tuple[Mark, ...] = ()
    breaks: tuple[Mark, ...] = ()
    label_width: int


def chart_rows(drawn: Timeline) -> list[ChartRow]:
    width = min(max((len(row.task) for row in drawn.rows), default=4), 24)
    rows = [ChartRow(label="", marks=drawn.ticks, breaks=drawn.breaks, label_width=width)]
    if drawn.marks:
        rows.append(ChartRow(label="", marks=drawn.marks, label_width=width))
    return rows + [_chart_row(row, drawn, width) for row in drawn.rows]


def _chart_row(row: Row, drawn: Timeline, width: int) -> ChartRow:
    return ChartRow(label=row.task, bars=row.bars, breaks=drawn.breaks, label_width=width)


def chart_line(row: ChartRow, width: int) -> Text:
    room = max(width - row.label_width - 3, 10)
    if row.marks:
        return line((f" {'':<{row.label_width}}  ", "muted")).append_text(_axis(row.marks, row.breaks, room))
    cells: list[tuple[str, str]] = [(" ", "muted")] * room
    for cut in row.breaks:
        cells[min(int(cut.at * room), room - 1)] = ("┊", "rule")
    for bar in row.bars:
        begin = min(int(bar.begin * room), room - 1)
        end = max(begin + 1, min(round(bar.end * room), room))
        glyph = "▒" if bar.attempt.undone_at is not None else PATTERNS[OF_OUTCOME[bar.attempt.outcome]]
        cells[begin:end] = [(glyph, OF_OUTCOME[bar.attempt.outcome])] * (end - begin)
        if len(row.bars) > 1:
            cells[begin] = (str(bar.attempt.number % 10), OF_OUTCOME[bar.attempt.outcome])
    return line((f" {row.label[: row.label_width]:<{row.label_width}}  ", "text"), *cells)


PATTERNS = {"done": "█", "failed": "▚", "attention": "░", "running": "▓"}
"""How a bar is filled, so that its outcome is seen without colours."""


def _axis(marks: Sequence[Mark], breaks: Sequence[Mark], room: int) -> Text:
    """Texts at their positions; one that would cover another is left out."""
    shown, end = line(), 0
    for mark in sorted((*marks, *(Mark(at=cut.at, text="//") for cut in breaks)), key=lambda mark: mark.at):
        at = min(int(mark.at * room), max(room - len(mark.text), 0))
        if at >= end:
            shown.append_text(line(" " * (at - end), (mark.text, "accent" if not mark.text[:1].isdigit() else "muted")))
            end = at + len(mark.text) + 1
            shown.append_text(line(" "))
    return shown
