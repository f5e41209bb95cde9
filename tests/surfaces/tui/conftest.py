"""Dashboards of sessions that are told event by event: no repository, no clock, no terminal."""

import functools
from collections.abc import Awaitable, Callable, Sequence
from io import StringIO
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace
from rich.console import Console
from tests.core.conftest import Story, done, review, task
from textual.pilot import Pilot

from iterdev.app.branches.diff import Change, FileChange
from iterdev.app.live.acts import Accept, Act, AnyPreview, Done, RollBack, command
from iterdev.core.errors import UserError
from iterdev.core.results import Usage
from iterdev.core.session import events
from iterdev.core.session.gates import plan_gate
from iterdev.core.session.summary import summarize
from iterdev.core.types import SessionId, Status, TaskId
from iterdev.core.views.history import History, evolve
from iterdev.core.views.previews import AcceptPreview, RollbackPreview
from iterdev.core.views.session import SessionLine, session_view
from iterdev.surfaces.tui.dashboard import Dashboard
from iterdev.surfaces.tui.source import Changed, Frame, Output, PlanEdit
from iterdev.teams.development.results import Finding, Review
from iterdev.teams.development.team import DEVELOPMENT

SIZES = ((120, 40), (80, 24), (60, 16))
SNAPSHOTS = Path(__file__).parent / "snapshots"
CHANGE = Change(base="a" * 40, tip="b" * 40)
PATCH = """\
diff --git a/till/cart.py b/till/cart.py
index 1111111..2222222 100644
--- a/till/cart.py
+++ b/till/cart.py
@@ -3,6 +3,6 @@ from till.money import as_text


-def total(cart):
-    return sum(price * quantity for _, price, quantity in cart)
+def total(cart, discount=0):
+    return sum(price * quantity for _, price, quantity in cart) * (100 - discount) / 100

 # the end
"""
LEAK = Finding(
    severity="critical",
    file="till/cart.py",
    line=6,
    dimension="correctness",
    description="total() returns a float, which the receipt prints as 5.0.87.0",
    suggestion="stay with whole cents",
)
SLOW = Finding(severity="low", file="till/cart.py", line=99, dimension="maintainability", description="a long line")


SAID = ("Reading till/cart.py ...", "Writing tests/test_search.py")


class Heard(Output):
    """What an agent said, told once."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)

    def new_lines(self) -> list[str]:
        told, self._lines = self._lines, []
        return told


class StorySource:
    """A source that shows a story, and keeps what it is asked to do."""

    def __init__(self, story: Story | None, *, alive: bool = True, said: Sequence[str] = SAID) -> None:
        self.story, self.alive, self._lines = story, alive, said
        self._told: object = None
        self.performed: list[Act] = []
        self.stale = 0
        """How many entries the next previews are behind."""

    def look(self) -> Frame | None:
        state = self.story.state if self.story else None
        told = (state.seq if state else 0, self.alive)
        if told == self._told:
            return None
        self._told = told
        if self.story is None or state is None:
            return Frame(repository="shop")
        view = session_view(state, DEVELOPMENT, engine_alive=self.alive)
        return Frame(
            repository="shop",
            sessions=(SessionLine(summarize(state), self.alive),),
            needs=view.needs,
            session=view,
            history=evolve(History(), self.story.entries, DEVELOPMENT),
            findings=DEVELOPMENT.findings(state),
            said={TaskId("DEV-004"): "Writing tests/test_search.py"},
        )

    def select(self, session: SessionId) -> None:
        self._told = None

    def why(self, task: TaskId) -> list[str]:
        return [f"{task} is pending: blocked by DEV-001"]

    def output(self, task: TaskId, number: int) -> Output:
        return Heard(*self._lines)

    def changed(self, task: str = "", round_: int | None = None) -> Changed:
        if round_ is not None and round_ > 1:
            raise UserError(f'There is no fix round "{round_}" in ids-x', hint="iterdev status")
        files = (
            FileChange(path="tests/test_discount.py", additions=11, deletions=0),
            FileChange(path="till/cart.py", additions=2, deletions=2),
            FileChange(path="logo.png", additions=None, deletions=None),
        )
        what = task or ("the whole session" if round_ is None else f"fix round {round_}")
        return Changed(what=what, change=CHANGE, files=files)

    def file_diff(self, change: Change, path: str) -> str:
        return PATCH if path == "till/cart.py" else "diff --git a/x b/x\n@@ -0,0 +1 @@\n+one\n"

    def preview(self, act: Act) -> AnyPreview | None:
        seq = (self.story.state.seq if self.story else 0) - self.stale
        self.stale = 0
        match act:
            case Accept(session=session):
                return AcceptPreview(
                    session=session,
                    seq=seq,
                    command=command(act),
                    into="main",
                    commits=2,
                    files=("tests/test_discount.py", "till/cart.py"),
                    fast_forward=True,
                    verdicts=("Tests: VERIFY-002: 100.0% of 10 tests passed",),
                    warnings=(),
                    reasons=("convergence was forced",) if self.story and self.story.team.forced else (),
                )
            case RollBack(session=session, target=target):
                return RollbackPreview(
                    session=session,
                    seq=seq,
                    command=command(act),
                    branch=f"iterdev/{session}",
                    tip="b" * 40,
                    to="a" * 40,
                    again=(TaskId(target), TaskId("VERIFY-001")),
                    removed=(TaskId("DEV-fix-1"),),
                )
            case _:
                return None

    def perform(self, act: Act) -> Done:
        self.performed.append(act)
        return Done(text="it is done", commands=(command(act),))

    def edit_plan(self) -> PlanEdit:
        raise UserError("The plan cannot be edited here", hint="iterdev status")


def tasks(count: int) -> Story:
    """A session with so many tasks, of which some are done, failed, running and waiting."""
    if count == 10:
        return ten_tasks()
    rows = [task(f"DEV-{number:04d}", *_before(number)) for number in range(1, count + 1)]
    story = Story(*rows, requirement="Rewrite everything")
    for number in range(1, 41):
        story.now += 7
        story.does(f"DEV-{number:04d}", done(f"part {number} is written", commit="c"))
        story.lands(f"DEV-{number:04d}")
    story.now += 7
    story.fails("DEV-0041", "the disk is full")
    story.starts("DEV-0042", "DEV-0043")
    story.now += 65
    return story


def _before(number: int) -> list[str]:
    """Waves of 40 tasks, each after one of the wave before."""
    return [f"DEV-{number - 40:04d}"] if number > 40 else []


def ten_tasks() -> Story:
    story = Story(
        task("DESIGN-001"),
        *(task(f"DEV-{number:03d}", "DESIGN-001") for number in range(1, 6)),
        task("VERIFY-001", "DEV-001"),
        task("REVIEW-001", "DEV-001"),
        task("DEV-006", "DEV-004"),
        task("VERIFY-002", "DEV-006"),
        requirement="Add search",
    )
    story.does("DESIGN-001", done("One index over titles.", usage=Usage(input_tokens=8_000, cost_usd=0.4)))
    story.now += 30
    story.starts("DEV-001")
    story.now += 52
    story.ends("DEV-001", done("The index is built.", commit="c" * 40, changed=("search.py",)))
    story.lands("DEV-001")
    story.fails("DEV-002", "no result after 3 requests")
    story.reviews("REVIEW-001", reviewed())
    story.happens(events.Warned("odd"))
    story.starts("DEV-004", agent="codex")
    story.now += 192
    return story


def reviewed() -> Review:
    return Review(id="REVIEW-001", status="completed", scores=review(5).scores, issues=(LEAK, SLOW))


def asking() -> Story:
    """A session that asks whether its plan is to be run."""
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"), requirement="Add login", auto=False)
    story.happens(events.GateOpened(plan_gate()))
    story.now += 360
    return story


def finished() -> Story:
    """A session that is over, and not accepted."""
    story = Story(task("DEV-001"), task("REVIEW-001", "DEV-001"), requirement="Add login")
    story.does("DEV-001", done("Login is there.", commit="c" * 40, changed=("login.py",)))
    story.lands("DEV-001")
    story.reviews("REVIEW-001", replace(reviewed(), scores=review(9).scores, issues=(SLOW,)))
    story.happens(events.Finished())
    assert story.state.tasks.count(Status.completed) == 2
    return story


def screen_text(dashboard: Dashboard) -> str:
    """What is on the screen, line by line, dialogs included."""
    width, height = dashboard.size
    console = Console(
        width=width, height=height, file=StringIO(), force_terminal=True, color_system="truecolor", record=True
    )
    console.print(
        dashboard.screen._compositor.render_update(full=True, screen_stack=dashboard._background_screens), end=""
    )
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert all(len(line) <= width for line in lines)
    return "\n".join(lines).rstrip("\n") + "\n"


Driven = Callable[[Pilot[bool], Dashboard], Awaitable[None]]


def drive(source: StorySource, steps: Driven, size: tuple[int, int] = (120, 40)) -> None:
    """Runs a dashboard without a terminal."""

    async def run() -> None:
        dashboard = Dashboard(source, now=lambda: source.story.now if source.story else 0.0)
        try:
            async with dashboard.run_test(size=size) as pilot:
                await settle(pilot)
                await steps(pilot, dashboard)
        finally:
            dashboard.close()

    anyio.run(run)


async def settle(pilot: Pilot[bool]) -> None:
    """Waits until everything that was begun is done, except for what never ends."""
    for _ in range(3):
        await pilot.pause()
        if ending := [worker for worker in pilot.app.workers if worker.group != "follow"]:
            await pilot.app.workers.wait_for_complete(ending)
        await pilot.pause()


async def press(pilot: Pilot[bool], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
        await settle(pilot)


def shown(source: StorySource, *keys: str, size: tuple[int, int] = (120, 40)) -> str:
    """The screen after these keys."""
    seen: list[str] = []

    async def steps(pilot: Pilot[bool], dashboard: Dashboard) -> None:
        await press(pilot, *keys)
        seen.append(screen_text(dashboard))

    drive(source, steps, size)
    return seen[0]


Compare = Callable[[str, str], None]


@pytest.fixture
def compare(request: pytest.FixtureRequest) -> Compare:
    """Compares with what was kept; to keep what is there now: pytest --update-snapshots."""
    return functools.partial(_compare, request.config.getoption("--update-snapshots"))


def _compare(update: object, name: str, text: str) -> None:
    path = SNAPSHOTS / f"{name}.txt"
    if update:
        SNAPSHOTS.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path.name} differs"
