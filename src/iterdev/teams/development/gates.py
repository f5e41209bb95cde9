"""The questions of the development team before the first task starts."""

from iterdev.core.session.events import Gate
from iterdev.core.session.state import State
from iterdev.teams.development import pipelines
from iterdev.teams.development.fields import Pipeline, Role
from iterdev.teams.development.state import development

PIPELINE_GATE = "pipeline"
APPROVE = "approve"


def pipeline_gate(state: State) -> Gate:
    analysis = development(state).analysis
    tasks = pipelines.first_tasks(analysis.pipeline, state.scope, state.session.engine)
    roles = ", ".join(dict.fromkeys(task.role for task in tasks if task.role != Role.gc_controller))
    question = (
        f'"{state.session.requirement}": the {analysis.pipeline} pipeline is recommended '
        f"(score {analysis.score}, complexity {analysis.complexity.level}; roles: {roles})"
    )
    return Gate(kind=PIPELINE_GATE, question=question, choices=(APPROVE, *Pipeline))


def plan_note(state: State) -> str:
    several = development(state).pipeline is Pipeline.multi_sprint and not state.session.by_hand
    return "; this is the first sprint, and the design says how many there are" if several else ""
