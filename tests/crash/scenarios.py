"""The scenarios of the crash matrix: a session, the agents in it, and what its user does next."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import msgspec
from msgspec import Struct
from tests.teams.toy import TOY

from iterdev.app.completion import AcceptOptions
from iterdev.core.ids import CONFLICT_FIX
from iterdev.core.request import Request
from iterdev.core.session.state import State
from iterdev.core.types import Engine, Status, TaskId
from iterdev.engine.effects import Fields
from iterdev.teams.contract import Team
from iterdev.teams.development.roles import Pipeline, Role, fields
from iterdev.teams.development.state import rows_of
from iterdev.teams.issues.events import IssueFacts
from iterdev.teams.issues.pipelines import IssueRequest
from iterdev.teams.issues.roles import Pipeline as IssuePipeline
from iterdev.teams.issues.team import ISSUES as ISSUE_TEAM
from iterdev.teams.table import TEAMS
from iterdev.tracker.issues import Description

SETTINGS = '[run]\nagent = "mine"\n[project]\ntest = "{test}"\n[agents.mine]\ncommand = ["sh", "{agent}"]\n'


class RunSession(Struct, frozen=True):
    """`iterdev run`, or `iterdev resume` when there is a session already."""

    stage: str
    one_step: bool = False
    """With `--step`."""
    part: str = ""
    """What the stage is a batch of tasks of, if one command could run the next batches too."""


class Answer(Struct, frozen=True):
    """`iterdev answer`, after an edit of tasks.csv if there is something to edit."""

    gate: str
    choice: str
    edit: Callable[[str], str] = lambda table: table


class RollBack(Struct, frozen=True):
    """`iterdev rollback`."""

    task: str
    stage: str = "rollback"


class Update(Struct, frozen=True):
    """The user commits a change of the README to main, and `iterdev update` asks for it."""

    stage: str = "request"


class Accept(Struct, frozen=True):
    """`iterdev accept`."""

    options: AcceptOptions = AcceptOptions()
    stage: str = "accept"


class UndoAccept(Struct, frozen=True):
    """`iterdev accept --undo`."""

    stage: str = "undo"


Step = RunSession | Answer | RollBack | Update | Accept | UndoAccept


class Scenario(Struct, frozen=True, kw_only=True):
    """A session in stages; no engine runs between two of them."""

    request: Request
    agent: str
    """What `sh` reads as the only agent."""
    next_step: Callable[[State | None], Step]
    """What the user does while the session is not over."""
    groups: Sequence[Sequence[str]] = (("",),)
    """Beginnings of the names of stages. For each group there are runs that have kills in each of its stages."""
    tasks: Callable[[Engine], Sequence[str]]
    """What the table holds in the end, besides conflict tasks."""
    readme: frozenset[str] = frozenset({"# Sample"})
    """The lines of the file that two developers change at the same time."""
    rollbacks: int = 0
    users_commits: int = 0
    """Commits that the user adds to main meanwhile."""
    test: str = "true"
    """The test command."""
    settings: str = ""
    """More of iterdev.toml."""
    kind: Callable[[str, Fields], str] | None = None
    """The kind of an effect, or empty for one that does not matter: of each kind, the first one is a kill point."""
    at_end: bool = False
    """Whether the kill points are those after the last event, up to the end of the process."""
    teams: Mapping[str, Team] = msgspec.field(default_factory=lambda: TEAMS)


ONE_SPRINT = Scenario(
    request=Request(requirement="Add a greeting", auto=True, pipeline=Pipeline.sprint),
    agent=r"""
cat > /dev/null
case $ITERDEV_ROLE in
architect) more=',"design":"one file","components":[{"name":"a","dependencies":[]}],"tasks":[{"id":"t","title":"t"}]' ;;
developer) echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt" ;;
reviewer)
  score=9
  if [ "$ITERDEV_TASK" = REVIEW-001 ]; then score=5; fi
  more=',"scores":{"correctness":'$score',"completeness":'$score',"maintainability":'$score',"security":'$score'}' ;;
esac
printf '{"id":"%s","status":"completed","findings":"done"%s}' "$ITERDEV_TASK" "$more" > "$ITERDEV_RESULT"
""",
    next_step=lambda _: RunSession("sprint"),
    tasks=lambda _: ["DESIGN-001", "DEV-001", "VERIFY-001", "REVIEW-001", "DEV-fix-1", "REVIEW-002"],
)


def _side_by_side(table: str) -> str:
    """The two developers of the first sprint need not wait for each other; tester and reviewer wait for both."""
    rows = list(csv.DictReader(io.StringIO(table)))
    for row in rows:
        if row["id"] == "DEV-002":
            row["deps"] = row["context_from"] = "DESIGN-001"
        if row["id"] in {"VERIFY-001", "REVIEW-001"}:
            row["deps"] = "DEV-001;DEV-002"
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _with_rollback(state: State | None) -> Step:
    """Runs the first sprint, rolls back the merge of its two changes, and runs it again."""
    if state is None or not state.tasks.plan or "plan" not in {*state.gates.answers, *state.gates.open}:
        return RunSession("plan")
    if "plan" in state.gates.open:
        return Answer("plan", "approve", _side_by_side)
    if "sprint-1" in state.gates.answers:
        return _next_batch("second sprint", state)
    if any(message.type == "rollback_initiated" for message in state.messages.sent):
        return Answer("sprint-1", "go-on") if "sprint-1" in state.gates.open else _next_batch("again", state)
    if "sprint-1" in state.gates.open:
        return RollBack(_last_of_first_work(state))
    if state.tasks.status(TaskId("DESIGN-001")) is not Status.completed:
        return RunSession("design", one_step=True)
    if any(state.tasks.status(TaskId(task)) is not Status.completed for task in ("DEV-001", "DEV-002")):
        return RunSession("side by side", one_step=True)
    return _next_batch("first sprint", state)


def _next_batch(part: str, state: State | None) -> RunSession:
    """A stage for each batch of tasks: a kill costs the batch that runs again, and not the whole sprint.

    The name has the tasks that are left, so that two runs in the same stage have the same work behind them.
    """
    if state is None:
        return RunSession(f"{part}: start", one_step=True, part=part)
    rows = [task.id for task, progress in state.tasks.rows() if not progress.status.is_final]
    unfinished = ["conflict" if CONFLICT_FIX in task else task for task in rows]
    return RunSession(f"{part}: {', '.join(unfinished)}", one_step=True, part=part)


def _with_repeated_rollback(state: State | None) -> Step:
    """Enters the same command again after an interrupted rollback."""
    if state and state.branch.rewind:
        return RollBack(state.branch.rewind.removeprefix("snapshot-").rpartition("-")[0])
    return _with_rollback(state)


def _last_of_first_work(state: State) -> str:
    first = [task.id for task in rows_of(state, Role.developer, 1) if not fields(task).round]
    done = [(state.tasks.progress[task].ended_at or 0, task) for task in first]
    return max(done)[1]


def _of_two_sprints(engine: Engine) -> list[str]:
    rows = [
        *("DESIGN-001", "DEV-001", "DEV-002", "VERIFY-001", "REVIEW-001", "DEV-fix-1", "REVIEW-002"),
        *("DESIGN-002", "DEV-003", "VERIFY-002", "REVIEW-003"),
    ]
    return [*rows, "GC-CHECK-001", "GC-CHECK-002", "GC-CHECK-003"] if engine is Engine.wave else rows


TWO_SPRINTS = Scenario(
    request=Request(requirement="Keep greetings", pipeline=Pipeline.multi_sprint),
    agent=r"""
cat > /dev/null
case $ITERDEV_ROLE in
architect)
  more=',"design":"files","components":[{"name":"a","dependencies":[]}]'
  more=$more',"tasks":[{"id":"t1","title":"store"},{"id":"t2","title":"serve"}]'
  more=$more',"milestones":[{"title":"Store them","tasks":["t1"]},{"title":"Serve them","tasks":["t2"]}]' ;;
developer)
  case $ITERDEV_TASK in
  *-fix-conflict) sed -i '/^[<=>]\{7\}/d' README.md ;;
  DEV-00[12]) echo "$ITERDEV_TASK" >> README.md ;;
  esac
  echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt"
  more=',"wisdom":{"learnings":["'$ITERDEV_TASK' was tried for the time '$ITERDEV_ATTEMPT'"]}' ;;
reviewer)
  score=7.5
  if [ "$ITERDEV_TASK" = REVIEW-001 ]; then score=5; fi
  more=',"scores":{"correctness":'$score',"completeness":'$score',"maintainability":'$score',"security":'$score'}' ;;
esac
printf '{"id":"%s","status":"completed","findings":"done"%s}' "$ITERDEV_TASK" "$more" > "$ITERDEV_RESULT"
""",
    next_step=_with_rollback,
    # Work that is repeated after a kill begins with the work of the other task: then there is no conflict.
    # A rollback that was interrupted becomes a part of the stage after it.
    groups=(("plan", "design", "first sprint", "again"), ("side by side", "second sprint"), ("rollback",)),
    tasks=_of_two_sprints,
    readme=frozenset({"# Sample", "DEV-001", "DEV-002"}),
    rollbacks=1,
)


def _with_update(state: State | None) -> Step:
    """The user changes the line that the developer changed too, before tester and reviewer look at the work."""
    if state is None or not state.tasks.plan or state.tasks.status(TaskId("DESIGN-001")) is not Status.completed:
        return RunSession("design", one_step=True)
    if state.tasks.status(TaskId("DEV-001")) is not Status.completed:
        return RunSession("work", one_step=True)
    if not state.branch.requested and not state.branch.updates:
        return Update()
    return _next_batch("update", state)


WITH_UPDATE = msgspec.structs.replace(
    ONE_SPRINT,
    agent=r"""
cat > /dev/null
case $ITERDEV_ROLE in
architect) more=',"design":"one file","components":[{"name":"a","dependencies":[]}],"tasks":[{"id":"t","title":"t"}]' ;;
developer)
  case $ITERDEV_TASK in
  *-fix-conflict) sed -i '/^[<=>]\{7\}/d' README.md ;;
  *) echo "$ITERDEV_TASK" >> README.md ;;
  esac
  echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt" ;;
reviewer) more=',"scores":{"correctness":9,"completeness":9,"maintainability":9,"security":9}' ;;
esac
printf '{"id":"%s","status":"completed","findings":"done"%s}' "$ITERDEV_TASK" "$more" > "$ITERDEV_RESULT"
""",
    next_step=_with_update,
    groups=(("update",),),
    tasks=lambda _: ["DESIGN-001", "DEV-001", "VERIFY-001", "REVIEW-001", "UPDATE-001"],
    readme=frozenset({"# Sample", "DEV-001", "the user"}),
    users_commits=1,
)
TOY_SESSION = Scenario(
    request=Request(requirement="Write a poem", auto=True),
    agent=r"""
cat > /dev/null
if [ "$ITERDEV_ROLE" = writer ]; then echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt"; fi
printf '{"id":"%s","status":"completed","findings":"done"}' "$ITERDEV_TASK" > "$ITERDEV_RESULT"
""",
    next_step=lambda _: RunSession("session"),
    tasks=lambda _: ["WRITE-001", "CHECK-001"],
    teams={TOY.name: TOY},
)
ARCHIVED = msgspec.structs.replace(
    ONE_SPRINT,
    request=Request(requirement="Add a greeting", auto=True, pipeline=Pipeline.patch),
    next_step=lambda _: RunSession("patch"),
    tasks=lambda _: ["DEV-001", "VERIFY-001"],
    settings='[session]\ncompletion_action = "auto_archive"\n',
    at_end=True,
)


def _with_builds(state: State | None) -> Step:
    """Everything up to the queue in batches, and all builds with their landings in one command."""
    return RunSession("builds") if state and TaskId("BUILD-001") in state.tasks.plan else _next_batch("plan", state)


def _kind_of_landing(name: str, fields: Fields) -> str:
    """What is done about work that waits to land: merged, tested, taken out, and landed."""
    recorded = str(fields.get("events", ""))
    kind = f"{name} {recorded.partition(' ')[0]}".strip()
    return kind if name in {"merge landings", "land"} or "landing" in fields or recorded.startswith("Land") else ""


ISSUES = ("GH-1", "GH-2", "GH-3")
BATCH = Scenario(
    request=Request(
        requirement=" ".join(ISSUES),
        auto=True,
        pipeline=IssuePipeline.batch,
        prepared=IssueRequest(
            issues=tuple(IssueFacts(id=issue, description=Description(title="Broken")) for issue in ISSUES),
            method="mine",
        ),
    ),
    # The first two builds break the tests together, unless one of them was done with the other in sight.
    agent=r"""
cat > /dev/null
each() { for issue in $(echo "$ITERDEV_ISSUES" | tr ';' ' '); do printf "$separator$1" "$issue"; separator=,; done; }
case $ITERDEV_ROLE in
explorer) more=',"contexts":['$(each '{"issue_id":"%s"}')']' ;;
planner) more=',"solutions":['$(each '{"issue_id":"%s","approach":"write","tasks":[{"id":"T1","title":"write"}]}')']' ;;
reviewer)
  score=90
  if [ "$ITERDEV_TASK" = AUDIT-001 ]; then score=50; fi
  one='{"score":'$score'}'
  names='"technical_feasibility":'$one',"risk_assessment":'$one',"completeness":'$one
  more=',"audits":['$(each '{"issue_id":"%s",'"$names"'}')']' ;;
implementer)
  how=alone
  if [ "$ITERDEV_TASK" = BUILD-003 ] || ls BUILD-00[12].txt > /dev/null 2>&1; then how=together; fi
  echo "$how" > "$ITERDEV_TASK.txt" ;;
esac
printf '{"id":"%s","status":"completed","findings":"done"%s}' "$ITERDEV_TASK" "$more" > "$ITERDEV_RESULT"
""",
    test="test $(cat README.md BUILD-*.txt 2> /dev/null | grep -c alone) -lt 2",
    next_step=_with_builds,
    teams={ISSUE_TEAM.name: ISSUE_TEAM},
    tasks=lambda _: [
        *(f"{prefix}-00{number}" for prefix in ("EXPLORE", "SOLVE", "BUILD") for number in (1, 2, 3)),
        *("AUDIT-001", "SOLVE-fix-001", "AUDIT-002", "MARSHAL-001"),
    ],
)


def _with_question(state: State | None) -> Step:
    """Answers every question with its default."""
    if state and state.gates.open:
        gate = next(iter(state.gates.open.values()))
        return Answer(gate.id, gate.choices[0])
    return RunSession("patch" if state and state.gates.answers else "ask")


NOTIFIED = msgspec.structs.replace(
    ARCHIVED,
    request=Request(requirement="Add a greeting", pipeline=Pipeline.patch),
    next_step=_with_question,
    settings='[notify]\ncommand = ["sh", "-c", "cat >> $HOME/told"]\n',
    at_end=False,
)
ACCEPTED = msgspec.structs.replace(ARCHIVED, settings="")
SCENARIOS = {
    "batch": BATCH,
    "landings": msgspec.structs.replace(BATCH, groups=(("builds",),), kind=_kind_of_landing),
    "archived": ARCHIVED,
    "toy": TOY_SESSION,
    "notified": NOTIFIED,
    "one-sprint": ONE_SPRINT,
    "batches": msgspec.structs.replace(ONE_SPRINT, next_step=partial(_next_batch, "sprint")),
    "update": WITH_UPDATE,
    "two-sprints": TWO_SPRINTS,
    "two-rollbacks": msgspec.structs.replace(TWO_SPRINTS, next_step=_with_repeated_rollback, groups=(("rollback",),)),
}
