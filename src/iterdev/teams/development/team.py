"""The development team as one value: everything that `teams/contract.py` asks for."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import cast

from iterdev.core import results
from iterdev.core.draft import Folding
from iterdev.core.errors import UserError
from iterdev.core.request import Request
from iterdev.core.rules.table_edits import TableRow
from iterdev.core.rules.team_rules import RoleSpec
from iterdev.core.session.events import Event, Warned
from iterdev.core.session.state import State
from iterdev.core.settings import Settings
from iterdev.core.types import Engine, TaskId, TeamState
from iterdev.core.verification import SuiteReport
from iterdev.teams import contract
from iterdev.teams.development import (
    announcements,
    critic,
    documents,
    events,
    pipelines,
    prompts,
    records,
    requirement_analysis,
    rules,
    sprints,
    views,
)
from iterdev.teams.development import columns as csv_columns
from iterdev.teams.development.requirement_analysis import TEAM_OF, Assessment, analyse
from iterdev.teams.development.results import REFERENCE, Finding
from iterdev.teams.development.roles import ROLES, WORKERS, Fields, Pipeline, Role, fields
from iterdev.teams.development.state import FOLDED, Development, DevelopmentDraft, development


@cache
def result_schema(role: str) -> Mapping[str, object]:
    whole = results.schema(ROLES[role].result)
    definitions = whole["$defs"]
    if isinstance(definitions, dict) and (finding := definitions.get(Finding.__name__)):
        finding["required"] += REFERENCE
    return whole


def _check_reviewer(settings: Settings, agents: Mapping[str, str]) -> None:
    developer, reviewer = (agents.get(role) or settings.agent_for(role) for role in (Role.developer, Role.reviewer))
    if settings.run.reviewer_differs and developer == reviewer:
        raise UserError(
            f'"{reviewer}" would review its own work, and [run] reviewer_differs does not allow that',
            hint="--role-agent reviewer=NAME, or [roles.reviewer] agent in iterdev.toml",
        )


class DevelopmentTeam(contract.Team):
    name = "iterdev"
    folders = ("design", "code", "verify", "review")
    roles: Mapping[str, RoleSpec] = ROLES
    workers: tuple[str, ...] = WORKERS
    conflict_brief = pipelines.CONFLICT
    pipelines: tuple[str, ...] = tuple(pipeline.value for pipeline in Pipeline)
    message_types: Mapping[str, tuple[str, ...]] = announcements.MESSAGE_TYPES
    event_types = events.EVENTS
    task_fields = Fields
    folded = FOLDED
    decided = events.DECIDED
    columns = csv_columns.COLUMNS
    analyzer: contract.Analyzer | None = requirement_analysis.ANALYZER

    plan = staticmethod(rules.plan)
    plan_note = staticmethod(rules.plan_note)
    update_tasks = staticmethod(rules.update_tasks)
    before_work = staticmethod(rules.before_work)
    follow_up = staticmethod(critic.follow_up)
    decision = staticmethod(critic.decision)
    finish = staticmethod(rules.finish)
    interpret = staticmethod(rules.interpret)
    completion_error = staticmethod(rules.completion_error)
    retried = staticmethod(critic.retried)
    tasks_of_round = staticmethod(critic.tasks_of_round)
    rolled_back = staticmethod(rules.rolled_back)
    has_output = staticmethod(rules.has_output)
    discoveries = staticmethod(rules.discoveries)
    announce = staticmethod(announcements.announce)
    plan_cells = staticmethod(csv_columns.plan_cells)
    result_cells = staticmethod(csv_columns.result_cells)
    read_fields = staticmethod(csv_columns.read_fields)
    check_results = staticmethod(csv_columns.read_verdict)
    prompt_parts = staticmethod(prompts.team_parts)
    change_shown_since = staticmethod(prompts.change_shown_since)
    files_of_others = staticmethod(prompts.files_of_others)
    choice_on_resume = staticmethod(sprints.choice_on_resume)
    reopened = staticmethod(sprints.reopened)
    planned_files = staticmethod(sprints.planned_files)
    commit_body = staticmethod(sprints.commit_body)
    documents = staticmethod(documents.documents)
    ledger_entry = staticmethod(records.ledger_entry)
    shown_otherwise = staticmethod(records.shown_otherwise)
    records = staticmethod(records.records)
    report = staticmethod(views.team_report)
    view = staticmethod(views.team_view)
    milestone = staticmethod(views.milestone)
    findings = staticmethod(views.findings)
    reviews = staticmethod(views.reviews)
    test_runs = staticmethod(views.test_runs)
    listed_choices = staticmethod(views.listed_choices)
    choice_descriptions = staticmethod(views.choice_descriptions)
    task_notes = staticmethod(views.task_notes)
    initial = staticmethod(Development)
    may_have_nothing_to_do = staticmethod(sprints.may_have_nothing_to_do)
    nothing_to_do = staticmethod(sprints.nothing_to_do)
    result_schema = staticmethod(result_schema)

    def draft(self, part: TeamState) -> Folding:
        return DevelopmentDraft(cast("Development", part))

    def role_for(self, text: str) -> str:
        """The first role whose words are in the text; the developer covers everything else."""
        found = analyse(text).capabilities
        return found[0].role if found else Role.developer

    def sprint(self, state: State, task: TaskId | None = None) -> int:
        return fields(state.tasks.plan[task]).sprint if task else development(state).sprint

    def baseline(self, state: State) -> tuple[SuiteReport, ...]:
        part = development(state)
        return part.baseline if (part.baseline_of or state.session.base) == state.branch.base else ()

    def pass_rate(self, state: State) -> float:
        return development(state).thresholds.pass_rate

    def session_prefix(self, engine: Engine) -> str:
        return "ids" if engine is Engine.wave else "IDS"

    def suggested_pipeline(self, requirement: str) -> tuple[str, str]:
        analysis = analyse(requirement)
        return analysis.pipeline, f"score {analysis.score}, complexity {analysis.complexity.level}"

    def started(self, request: Request, settings: Settings, agents: Mapping[str, str]) -> Sequence[Event]:
        _check_reviewer(settings, agents)
        analysis, warning = analyse(request.requirement, request.files), ""
        if isinstance(request.prepared, Assessment):
            analysis = requirement_analysis.assessed(request.requirement, request.files, request.prepared)
            warning = requirement_analysis.contradiction(analysis, request.prepared)
        pipeline = Pipeline(request.pipeline) if request.pipeline else None
        thresholds = events.Thresholds(rounds=settings.limits.rounds)
        started = events.TeamStarted(analysis=analysis, pipeline=pipeline, thresholds=thresholds)
        return (started, Warned(warning)) if warning else (started,)

    def settings_changed(self, state: State, settings: Settings) -> Sequence[Event]:
        thresholds = events.Thresholds(rounds=settings.limits.rounds)
        return () if thresholds == development(state).thresholds else (events.ThresholdsChanged(thresholds),)

    def roles_needed(self, state: State) -> set[str]:
        if state.tasks.plan:
            return {task.role for task in state.tasks.plan.values()} - {Role.gc_controller}
        part = development(state)
        return set(TEAM_OF[part.pipeline or part.analysis.pipeline])

    def table_edited(self, state: State, rows: Sequence[TableRow]) -> Sequence[Event]:
        return tuple(csv_columns.edited_verdicts(development(state), state.tasks.plan, rows))

    def restored(self, documents: Mapping[str, object], rows: Sequence[TableRow]) -> Sequence[Event]:
        return *records.restored(documents, rows), *csv_columns.edited_verdicts(Development(), {}, rows)


DEVELOPMENT = DevelopmentTeam()
