"""What is asked before the first task starts: which pipeline, and whether its tasks are the right ones."""

from itertools import islice

from iterdev.core.session import events
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Pipeline, Role
from iterdev.teams.development import pipelines

APPROVE, REJECT = "approve", "reject"
PIPELINE_GATE, PLAN_GATE = "pipeline", "plan"
LISTED = 50
"""Tasks that a question names before it points to the table."""


def pipeline_gate(state: State) -> events.Gate:
    analysis = state.session.analysis
    roles = ", ".join(task.role for task in _preview(state, analysis.pipeline))
    question = (
        f'"{state.session.requirement}": the {analysis.pipeline} pipeline is recommended '
        f"(score {analysis.score}, complexity {analysis.complexity.level}; roles: {roles})"
    )
    return events.Gate(id=PIPELINE_GATE, question=question, choices=(APPROVE, *Pipeline))


def plan_gate(state: State) -> events.Gate:
    several = state.pipeline is Pipeline.multi_sprint and not state.session.by_hand
    more = "; this is the first sprint, and the design says how many there are" if several else ""
    return events.Gate(id=PLAN_GATE, question=f"Run these tasks? {_listed(state)}{more}", choices=(APPROVE, REJECT))


def _preview(state: State, pipeline: Pipeline) -> list[Task]:
    """One task per role, in order of appearance."""
    tasks = pipelines.first_tasks(pipeline, state.scope, state.session.engine)
    return list({task.role: task for task in tasks if task.role is not Role.gc_controller}.values())


def _listed(state: State) -> str:
    """The table in one line; of a long one the beginning, and where the rest is."""
    rows = [f"{task.id} (wave {task.wave}, {task.mode})" for task in islice(state.tasks.values(), LISTED)]
    rest = len(state.tasks) - len(rows)
    return ", ".join(rows) + (f", and {rest} more in {state.session.folder}/tasks.csv" if rest else "")
