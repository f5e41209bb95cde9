"""W6: what was changed, file by file, with the findings of all reviews at their lines."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import PurePosixPath

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from iterdev.app.branches import diff
from iterdev.app.branches.diff import Change, FileChange
from iterdev.app.live import acts
from iterdev.app.live.acts import Comment
from iterdev.app.sessions import Repository
from iterdev.core.errors import UserError
from iterdev.core.types import TaskId
from iterdev.core.views.pages.diff_lines import DiffLine, LineKind, diff_lines, side_by_side
from iterdev.core.views.team import FindingView
from iterdev.surfaces.web.highlighting import highlighted
from iterdev.surfaces.web.page import ActRequest, Done, Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page

BESIDE = "beside"
"""The value of `layout` with which both versions are side by side."""
MOST_FILES = 400
"""Files that are listed."""
OPEN_FILES, OPEN_LINES = 20, 1500
"""Up to so many files with so many changed lines are open at once; above that, one at a time."""
MOST_LINES = 20_000
"""Lines of one file that are shown."""
GENERATED = frozenset(
    [
        *("package-lock.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "uv.lock", "Cargo.lock", "composer.lock"),
        *("Gemfile.lock", "go.sum", "requirements.lock", "npm-shrinkwrap.json"),
    ]
)
"""Files that no person reads; they are closed at first."""


class ShownLine(Struct, frozen=True, kw_only=True):
    line: DiffLine
    html: Markup
    findings: tuple[FindingView, ...]


class ShownFile(Struct, frozen=True, kw_only=True):
    change: FileChange
    number: int
    is_generated: bool
    findings: int
    head: tuple[FindingView, ...] = ()
    """Findings whose line is not part of the change."""
    lines: tuple[ShownLine, ...] | None = None
    """None while the file is closed."""
    pairs: tuple[tuple[ShownLine | None, ShownLine | None], ...] = ()
    """The lines of both versions beside each other, if that is wanted."""
    is_cut: bool = False


def page(request: PageRequest) -> Page:
    task, round_, wanted = request.query.get("task", ""), request.number("round", 0), request.query.get("file", "")
    every, beside = request.query.get("findings") != "open", request.query.get("layout") == BESIDE
    with request.session() as watched:
        view = watched.view(room=0)
        found = [one for one in watched.findings() if every or one.fixed_in is None]
        tasks = list(dict.fromkeys(one.task for one in watched.history().attempts if one.commit))
    with request.repository() as repository:
        try:
            change = diff.change_of(repository, view.id, task, round_ or None)
        except UserError as error:
            change, problem = None, error.message
        else:
            problem = ""
        files = tuple(_files(repository, change, found, wanted)) if change else ()
    files = tuple(map(_paired, files)) if beside else files
    known = {one.change.path for one in files}
    rounds = view.team.fields.get("round", 0)
    values = {
        "view": view,
        "change": change,
        "problem": problem,
        "files": files,
        "added": sum(one.change.additions or 0 for one in files),
        "removed": sum(one.change.deletions or 0 for one in files),
        "elsewhere": [one for one in found if one.file not in known],
        "findings": found,
        "task": task,
        "tasks": tasks,
        "round": round_,
        "rounds": rounds if isinstance(rounds, int) else 0,
        "every": every,
        "beside": beside,
        "layout": BESIDE,
        "file": wanted,
        "may_act": request.may_act,
    }
    return session_page(
        request, view, "changes", "Changes", Part(name="changes", template="changes.html", values=values)
    )


def _files(repository: Repository, change: Change, findings: Iterable[FindingView], wanted: str) -> Iterator[ShownFile]:
    changed = diff.changed_files(repository, change)
    size = sum((one.additions or 0) + (one.deletions or 0) for one in changed if not _is_generated(one.path))
    small = len(changed) <= OPEN_FILES and size <= OPEN_LINES
    by_file = {name: tuple(found) for name, found in groupby(sorted(findings, key=_place), key=lambda one: one.file)}
    for number, one in enumerate(changed[:MOST_FILES], 1):
        own, generated = by_file.get(one.path, ()), _is_generated(one.path)
        closed = ShownFile(change=one, number=number, is_generated=generated, findings=len(own), head=own)
        is_open = one.path == wanted if wanted else small and not generated
        yield _opened(closed, diff_lines(diff.file_diff(repository, change, one.path)), own) if is_open else closed


def _place(finding: FindingView) -> tuple[str, int]:
    return finding.file, finding.line or 0


def _is_generated(path: str) -> bool:
    return PurePosixPath(path).name in GENERATED


def _opened(file: ShownFile, lines: Sequence[DiffLine], findings: Sequence[FindingView]) -> ShownFile:
    shown = lines[:MOST_LINES]
    there = {line.new for line in shown if line.kind in {LineKind.added, LineKind.same}}
    colours = _coloured(shown, file.change.path)
    return ShownFile(
        change=file.change,
        number=file.number,
        is_generated=file.is_generated,
        findings=file.findings,
        head=tuple(one for one in findings if one.line not in there),
        lines=tuple(
            ShownLine(
                line=line,
                html=html,
                findings=tuple(one for one in findings if one.line == line.new)
                if line.kind in {LineKind.added, LineKind.same}
                else (),
            )
            for line, html in zip(shown, colours, strict=True)
        ),
        is_cut=len(lines) > len(shown),
    )


def _paired(file: ShownFile) -> ShownFile:
    lines = file.lines or ()
    places = side_by_side([one.line for one in lines])
    pairs = ((None if old is None else lines[old], None if new is None else lines[new]) for old, new in places)
    return replace(file, pairs=tuple(pairs))


def _coloured(lines: Sequence[DiffLine], file: str) -> list[Markup]:
    """Both versions are read as a whole, so that a string over several lines is one."""
    made: dict[int, Markup] = {}
    for kinds in ({LineKind.same, LineKind.removed}, {LineKind.same, LineKind.added}):
        places = [place for place, line in enumerate(lines) if line.kind in kinds]
        made |= zip(places, highlighted([lines[place].text for place in places], file), strict=True)
    rest = highlighted([line.text for line in lines], "")
    return [made.get(place, rest[place]) for place in range(len(lines))]


def comment(request: ActRequest) -> Done:
    """What a person says of a change, as feedback; it is linked to the task that it is about."""
    fields, session = request.fields, request.session
    text, where = fields.get("text", "").strip(), fields.get("where", "").strip()
    if not text:
        raise UserError("The comment is empty", hint="say what you think of the change")
    said = Comment(
        session=session,
        text=f"{where}: {text}" if where else text,
        task=TaskId(task) if (task := fields.get("task", "")) else None,
        severity="high" if fields.get("severity") == "high" else "medium",
    )
    with request.repository() as repository:
        done = acts.perform(repository, said)
    return Done(what=done.commands[0], go_to=f"/boards/feedback#{session}")
