"""Reads the Test Anything Protocol: of programs that print it, and of Perl's test harness, which keeps it in files."""

import re
from collections.abc import Mapping

from msgspec import Struct

from iterdev.host.test_suites.reports.tally import NAME_LIMIT, Outcome, Tally, cut, tally

DEPTH = 50
"""Subtests inside of each other."""

_POINT = re.compile(r"(not )?ok (\d{1,9})(?!\S) *(?:- )?(.*)")
_BARE_POINT = re.compile(r"(not )?ok()()\s*")
_PLAN = re.compile(r"1\.\.(\d{1,9})(?!\S) *(.*)")
_DIRECTIVE = re.compile(r"(?:^|\s)#\s*(skip|todo)", re.IGNORECASE)
_TIME = re.compile(r"#\s*time=\S+$|(?<![\w.])\d{1,12}(?:\.\d{1,12})? ?(?:ms|s|µs|us)(?!\w)")
_SUMMARY = re.compile(
    r"# (?:Subtest: |tests +\d|pass +\d|fail +\d|skip|todo|time=|ok$|failed \d|Failed test|Looks like)"
)
_TOTAL = re.compile(r"# (?:pass|fail|skip) +(\d{1,9})")


class _Point(Struct, frozen=True):
    name: str
    ok: bool
    directive: bool


class _Refused(Exception):
    """The text breaks the protocol."""


class _Level(Struct):
    """The test points of one indentation."""

    subtests_count: bool
    """Whether subtests are tests of their own, and not only details of a point."""
    outcomes: list[tuple[str, Outcome]] = []
    count: int = 0
    plan: int | None = None
    summed: int = 0
    """Points by the summary at the end."""
    comment: str = ""
    subtests: list[tuple[str, Outcome]] | None = None
    """Those that belong to the next point."""
    opened: _Point | None = None
    """A point whose subtests follow it in braces."""


def tap(text: str, *, comments: bool = False) -> Tally | None:
    """Reads one stream; with comments, a comment names the tests that follow it, as tape prints them."""
    try:
        outcomes = _stream(text, comments=comments)
    except _Refused:
        return None
    return tally(outcomes)


_PASSED = re.compile(r"\s*ok \d{1,9}(?!\S).*")
_DETAILS = re.compile(r"\s*---\s*|\s+\S.*")
"""What belongs to a point above it: a block in YAML."""


def tap_output(text: str) -> str:
    """The stream without the points that passed, nor comments that only announce such points.

    A program may print its points in any order, so that the end of a long stream need not say what failed.
    """
    if not re.search(r"^[ \t]*not ok\b", text, re.MULTILINE):
        return text
    kept: list[str] = []
    after_pass = False
    for line in text.splitlines():
        if _PASSED.fullmatch(line):
            after_pass = True
            continue
        fails = line.lstrip().startswith("not ok")
        if after_pass and not fails and _DETAILS.fullmatch(line) and not line.lstrip().startswith("#"):
            continue
        if after_pass and not fails and kept and kept[-1].startswith("# ") and not _SUMMARY.match(kept[-1]):
            kept.pop()
        after_pass = False
        kept.append(line)
    return "\n".join(kept)


def harness(files: Mapping[str, str], failed: frozenset[str]) -> Tally | None:
    """Reads the streams of several test programs, of which some failed whatever they printed.

    Perl's harness counts a subtest as one test, however many there are in it.
    """
    outcomes: list[tuple[str, Outcome]] = []
    for program, text in files.items():
        try:
            points = _stream(text, subtests_count=False)
        except _Refused:
            if program not in failed:
                return None
            points = []
        outcomes += ((f"{program} > {name}" if name else program, outcome) for name, outcome in points)
        if program in failed and all(outcome != "failed" for _, outcome in points):
            outcomes.append((program, "failed"))
    outcomes += ((program, "failed") for program in sorted(failed - files.keys()))
    return tally(outcomes) if outcomes else None


def _stream(text: str, *, comments: bool = False, subtests_count: bool = True) -> list[tuple[str, Outcome]]:
    levels = [_Level(subtests_count)]
    explained = False
    for line in text.splitlines():
        stripped = line.lstrip(" ")
        indent = len(line) - len(stripped)
        if explained or stripped.startswith("---"):
            explained = stripped.rstrip() != "..."
        elif stripped.startswith("Bail out!"):
            raise _Refused
        # At the top, a word alone is more likely the output of a test.
        elif indent % 4 == 0 and (_is_tap(stripped) or (indent and _BARE_POINT.fullmatch(stripped))):
            _to_depth(levels, indent // 4)
            _line(levels[-1], stripped, comments=comments)
    _to_depth(levels, 0)
    _check_plan(levels[0])
    return levels[0].outcomes


def _is_tap(line: str) -> bool:
    return bool(_POINT.match(line) or _PLAN.match(line) or line.startswith("# ") or line.rstrip() == "}")


def _to_depth(levels: list[_Level], depth: int) -> None:
    if depth >= DEPTH:
        raise _Refused
    while len(levels) <= depth:
        levels.append(_Level(levels[0].subtests_count))
    while len(levels) > depth + 1:
        inner = levels.pop()
        if inner.count or inner.plan is not None:
            _check_plan(inner)
            if levels[-1].subtests is None:
                levels[-1].subtests = []
            levels[-1].subtests += inner.outcomes


def _check_plan(level: _Level) -> None:
    _close(level)
    # ava does not plan for what fails outside of its tests, but counts it at the end.
    planned = level.plan == level.count or (level.plan is not None and level.plan < level.count == level.summed)
    if not planned:
        raise _Refused


def _line(level: _Level, line: str, *, comments: bool) -> None:
    if point := _POINT.match(line) or _BARE_POINT.fullmatch(line):
        level.count += 1
        if point[2] and int(point[2]) != level.count:
            raise _Refused
        _begin(level, _point(point), opens=line.rstrip().endswith("{"))
    elif plan := _PLAN.match(line):
        if level.plan is not None:
            raise _Refused
        level.plan = int(plan[1])
        if level.plan == 0:
            level.outcomes.append((plan[2].lstrip("# "), "skipped"))
    elif line.startswith("# "):
        if total := _TOTAL.fullmatch(line.rstrip()):
            level.summed += int(total[1])
        if comments and not _SUMMARY.match(line):
            level.comment = _TIME.sub("", line[2:NAME_LIMIT]).strip()
    elif level.opened is not None:
        _finish(level, level.opened)
        level.opened = None


def _point(match: re.Match[str]) -> _Point:
    directive = _DIRECTIVE.search(match[3])
    named = cut(match[3][: directive.start()] if directive else match[3])
    name = _TIME.sub("", named.rstrip().removesuffix("{")).strip()
    return _Point(name, ok=match[1] is None, directive=directive is not None)


def _begin(level: _Level, point: _Point, *, opens: bool) -> None:
    _close(level)
    if opens:
        level.opened = point
    else:
        _finish(level, point)


def _close(level: _Level) -> None:
    """A brace at the end of a line that no subtests follow was part of the name."""
    if level.opened is not None:
        if level.subtests is not None:
            raise _Refused
        _finish(level, level.opened)
        level.opened = None


def _finish(level: _Level, point: _Point) -> None:
    """Adds the subtests of a point, or the point itself if it has none, or failed for another reason."""
    subtests, level.subtests = level.subtests or [], None
    if not level.subtests_count:
        subtests = []
    name = " > ".join(part for part in (level.comment, point.name) if part)
    for inner, ended in subtests:
        tolerated = ended == "failed" and (point.ok or point.directive)
        level.outcomes.append((cut(f"{name} > {inner}"), "skipped" if tolerated else ended))
    explained = any(ended == "failed" for _, ended in subtests)
    if not subtests or not (point.ok or point.directive or explained):
        outcome: Outcome = "skipped" if point.directive else "passed" if point.ok else "failed"
        level.outcomes.append((name, outcome))
