"""What the crash matrix plays: a session, the agents in it, and the user, who goes by what the session shows."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct
from tests.teams.toy import TOY

from iterdev.core.request import Request
from iterdev.core.session.state import State
from iterdev.core.types import Engine, Status, TaskId
from iterdev.teams.contract import Team
from iterdev.teams.development.roles import Pipeline, Role, fields
from iterdev.teams.development.state import rows_of
from iterdev.teams.table import TEAMS

SETTINGS = '[run]\nagent = "mine"\n[project]\ntest = "true"\n[agents.mine]\ncommand = ["sh", "{agent}"]\n'


class GoOn(Struct, frozen=True):
    """`iterdev run`, or `iterdev resume` when there is a session already."""

    chapter: str
    one_step: bool = False
    """With `--step`."""
    part: str = ""
    """What the chapter is a batch of tasks of, if the next batches could be made by the same command."""


class Answer(Struct, frozen=True):
    """`iterdev answer`, after an edit of tasks.csv if there is something to edit."""

    gate: str
    choice: str
    edit: Callable[[str], str] = lambda table: table


class RollBack(Struct, frozen=True):
    """`iterdev rollback`."""

    task: str
    chapter: str = "rollback"


Step = GoOn | Answer | RollBack


class Story(Struct, frozen=True, kw_only=True):
    """Chapters end where the user can look around: no engine is at work."""

    request: Request
    agent: str
    """What `sh` reads as the only agent."""
    next_step: Callable[[State | None], Step]
    """What the user does while the session is not over."""
    apart: Sequence[str] = ()
    """Chapters that get tellings of their own; in all others somebody is killed in one and the same telling."""
    only_apart: bool = False
    """Whether nobody is killed in the other chapters."""
    tasks: Callable[[Engine], Sequence[str]]
    """What the table holds in the end, beside tasks that resolve a conflict."""
    readme: frozenset[str] = frozenset({"# Sample"})
    """The lines of the file that developers may fight for."""
    conflicts: int = 0
    """How many there are if nobody is killed."""
    rollbacks: int = 0
    teams: Mapping[str, Team] = msgspec.field(default_factory=lambda: TEAMS)


ONE_SPRINT = Story(
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
    next_step=lambda _: GoOn("sprint"),
    tasks=lambda _: ["DESIGN-001", "DEV-001", "VERIFY-001", "REVIEW-001", "DEV-fix-1", "REVIEW-002"],
)


def _side_by_side(table: str) -> str:
    """The two developers of the first sprint need not wait for each other, and whoever looks waits for both."""
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


def _goes_back_once(state: State | None) -> Step:
    """Lets the first sprint be made, undoes what brought its two changes together, and has it made again."""
    if state is None or not state.tasks.plan or "plan" not in {*state.gates.answers, *state.gates.open}:
        return GoOn("plan")
    if "plan" in state.gates.open:
        return Answer("plan", "approve", _side_by_side)
    if "sprint-1" in state.gates.answers:
        return _next_batch("second sprint", state)
    if any(message.type == "rollback_initiated" for message in state.messages.sent):
        return Answer("sprint-1", "go-on") if "sprint-1" in state.gates.open else _next_batch("again", state)
    if "sprint-1" in state.gates.open:
        return RollBack(_last_of_first_work(state))
    if state.tasks.status(TaskId("DESIGN-001")) is not Status.completed:
        return GoOn("design", one_step=True)
    if any(state.tasks.status(TaskId(task)) is not Status.completed for task in ("DEV-001", "DEV-002")):
        return GoOn("side by side", one_step=True)
    return _next_batch("first sprint", state)


def _next_batch(part: str, state: State) -> GoOn:
    """A chapter for each batch of tasks: a kill costs the batch that is made again, and not the whole sprint."""
    unfinished = [task.id for task, progress in state.tasks.rows() if not progress.status.is_final]
    finished = len(state.tasks.plan) - len(unfinished)
    return GoOn(f"{part}, after {finished}: {', '.join(unfinished)}", one_step=True, part=part)


def _insists(state: State | None) -> Step:
    """Types the same command again when a rollback was cut short."""
    if state and state.branch.rewind:
        return RollBack(state.branch.rewind.removeprefix("snapshot-").rpartition("-")[0])
    return _goes_back_once(state)


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


TWO_SPRINTS = Story(
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
    next_step=_goes_back_once,
    # Work that is made again after a kill sees what it would have collided with: then there is no conflict to resolve.
    # A rollback that was cut short becomes a part of the chapter after it.
    apart=["side by side", "rollback"],
    tasks=_of_two_sprints,
    readme=frozenset({"# Sample", "DEV-001", "DEV-002"}),
    conflicts=1,
    rollbacks=1,
)
TOY_SESSION = Story(
    request=Request(requirement="Write a poem", auto=True),
    agent=r"""
cat > /dev/null
if [ "$ITERDEV_ROLE" = writer ]; then echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt"; fi
printf '{"id":"%s","status":"completed","findings":"done"}' "$ITERDEV_TASK" > "$ITERDEV_RESULT"
""",
    next_step=lambda _: GoOn("session"),
    tasks=lambda _: ["WRITE-001", "CHECK-001"],
    teams={TOY.name: TOY},
)
STORIES = {
    "toy": TOY_SESSION,
    "one-sprint": ONE_SPRINT,
    "two-sprints": TWO_SPRINTS,
    "two-rollbacks": msgspec.structs.replace(TWO_SPRINTS, next_step=_insists, apart=["rollback"], only_apart=True),
}
