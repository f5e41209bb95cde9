"""The task list of GitHub spec-kit: `tasks.md`, with phases, and tasks that may run side by side marked with [P]."""

import re
from collections.abc import Iterator

from msgspec import Struct

from iterdev.tracker.importers.contract import Import, ImportedTask, Losses

TOOL = "spec-kit"
_TASK = re.compile(
    r"\s*[-*]\s*\[(?P<mark>[ xX])\]\s*\**(?P<id>T-?\d{1,4}[a-z]?)\**[:.]?\s+"
    r"(?P<markers>(?:\[[^\]]+\]\s*)*)(?P<text>\S.*)"
)
_PHASE = re.compile(r"#{2,4}\s+(?P<phase>(?:Phase|Story|Setup|Polish)\b.*)", re.IGNORECASE)
_MARKER = re.compile(r"\[([^\]]+)\]")
_BOX = re.compile(r"\s*[-*]\s*\[[ xX]\]")


class _Line(Struct, frozen=True, kw_only=True):
    id: str
    text: str
    phase: str
    markers: tuple[str, ...]
    is_done: bool

    @property
    def is_parallel(self) -> bool:
        return "P" in self.markers


def is_task_list(text: str) -> bool:
    return any(_TASK.match(line) for line in text.splitlines())


def read(text: str, path: str) -> Import:
    """The tasks in their order: one without [P] waits for those before it, neighbours with [P] run side by side."""
    losses = Losses()
    lines = list(_lines(text, losses))
    tasks: list[ImportedTask] = []
    before: tuple[str, ...] = ()
    beside: list[str] = []
    phase = ""
    for line in lines:
        # A task list runs its phases one after another; only tasks of one phase are side by side.
        if beside and (not line.is_parallel or line.phase != phase):
            before, beside = tuple(beside), []
        tasks.append(_task(line, before, path))
        phase = line.phase
        if line.is_parallel:
            beside.append(line.id)
        else:
            before = (line.id,)
    return Import(tool=TOOL, tasks=tuple(tasks), notes=losses.notes("line"))


def _lines(text: str, losses: Losses) -> Iterator[_Line]:
    phase, seen = "", set[str]()
    for line in text.splitlines():
        if heading := _PHASE.match(line):
            phase = heading["phase"].strip()
        elif found := _TASK.match(line):
            name = found["id"].replace("-", "")
            if name in seen:
                losses.say(f"{name} occurs twice; the second one is left out: {found['text'][:80]}")
                continue
            seen.add(name)
            yield _Line(
                id=name,
                text=found["text"].strip(),
                phase=phase,
                markers=tuple(_MARKER.findall(found["markers"])),
                is_done=found["mark"] in "xX",
            )
        elif _BOX.match(line):
            losses.count("a box without an id such as T001, and left out")


def _task(line: _Line, before: tuple[str, ...], path: str) -> ImportedTask:
    story = next((marker for marker in line.markers if marker != "P"), "")
    where = "; ".join(filter(None, (line.phase, f"story {story}" if story else "", f"from {path}")))
    return ImportedTask(
        id=line.id,
        title=line.text[:100],
        description=f"{line.text} ({where}; the specification and the plan are beside that file)",
        deps=before,
        is_done=line.is_done,
    )
