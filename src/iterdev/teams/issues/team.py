"""The issue team as one value: everything that `teams/contract.py` asks for."""

from collections.abc import Mapping, Sequence
from typing import cast

from iterdev.core import ids
from iterdev.core.draft import Folding
from iterdev.core.errors import UserError
from iterdev.core.request import Request
from iterdev.core.rules.team_rules import RoleSpec
from iterdev.core.session.events import Event
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.settings import OnRejection, Settings, TimeLimits
from iterdev.core.types import Engine, TeamState
from iterdev.core.verification import SuiteReport
from iterdev.teams import contract
from iterdev.teams.issues import (
    announcements,
    documents,
    events,
    marshal,
    pipelines,
    prompts,
    records,
    restoring,
    rules,
    tracking,
    views,
)
from iterdev.teams.issues import columns as csv_columns
from iterdev.teams.issues.roles import AUTO, ROLES, WORKERS, Fields, Pipeline, Role, fields
from iterdev.teams.issues.state import FOLDED, Issues, IssuesDraft, issue_part

SLUG = 30
"""Characters of an issue's id in the id of a session."""


def _thresholds(settings: Settings) -> events.Thresholds:
    return events.Thresholds(asks=settings.issue.on_rejection is OnRejection.ask)


class IssueTeam(contract.Team):
    name = "issue"
    folders = ("explorations", "solutions", "audits", "queue", "builds")
    roles: Mapping[str, RoleSpec] = ROLES
    workers: tuple[str, ...] = WORKERS
    pipelines: tuple[str, ...] = tuple(pipeline.value for pipeline in Pipeline)
    message_types: Mapping[str, tuple[str, ...]] = announcements.MESSAGE_TYPES
    event_types = events.EVENTS
    task_fields = Fields
    folded = FOLDED
    decided = events.DECIDED
    columns = csv_columns.COLUMNS
    time_limits = TimeLimits(wave=1200, interactive=600, finish=120)

    plan = staticmethod(rules.plan)
    plan_note = staticmethod(rules.plan_note)
    before_work = staticmethod(rules.before_work)
    may_have_nothing_to_do = staticmethod(rules.may_have_nothing_to_do)
    nothing_to_do = staticmethod(rules.nothing_to_do)
    follow_up = staticmethod(rules.follow_up)
    finish = staticmethod(rules.finish)
    interpret = staticmethod(rules.interpret)
    has_output = staticmethod(rules.has_output)
    rolled_back = staticmethod(rules.rolled_back)
    update_tasks = staticmethod(rules.update_tasks)
    discoveries = staticmethod(rules.discoveries)
    announce = staticmethod(announcements.announce)
    plan_cells = staticmethod(csv_columns.plan_cells)
    result_cells = staticmethod(csv_columns.result_cells)
    read_fields = staticmethod(csv_columns.read_fields)
    table_edited = staticmethod(csv_columns.table_edited)
    prompt_parts = staticmethod(prompts.team_parts)
    previous_context = staticmethod(prompts.previous_context)
    commit_body = staticmethod(documents.commit_body)
    documents = staticmethod(documents.documents)
    ledger_entry = staticmethod(records.ledger_entry)
    shown_otherwise = staticmethod(records.shown_otherwise)
    records = staticmethod(records.records)
    prepared = staticmethod(restoring.prepared)
    restored = staticmethod(restoring.restored)
    tracker_rules = staticmethod(tracking.tracker_rules)
    view = staticmethod(views.team_view)
    task_notes = staticmethod(views.task_notes)
    order_reasons = staticmethod(marshal.order_reasons)
    milestone = staticmethod(views.milestone)
    report = staticmethod(views.team_report)
    choice_descriptions = staticmethod(views.choice_descriptions)
    initial = staticmethod(Issues)

    def draft(self, part: TeamState) -> Folding:
        return IssuesDraft(cast("Issues", part))

    def issues_of(self, task: Task) -> tuple[str, ...]:
        return fields(task).issues

    def baseline(self, state: State) -> tuple[SuiteReport, ...]:
        known = issue_part(state).baseline
        return known.reports if known and known.base == state.branch.base else ()

    def session_prefix(self, engine: Engine) -> str:
        return "issue" if engine is Engine.wave else "TISL"

    def session_slug(self, request: Request) -> str:
        found = request.prepared
        first = found.issues[0].id if isinstance(found, pipelines.IssueRequest) else request.requirement
        return ids.slug(first, SLUG)

    def started(self, request: Request, settings: Settings, agents: Mapping[str, str]) -> Sequence[Event]:
        del agents
        found = request.prepared
        if not isinstance(found, pipelines.IssueRequest):
            raise UserError("The request names no issue", hint='iterdev resolve "GH-42"')
        pipeline = Pipeline(request.pipeline) if request.pipeline else pipelines.pipeline_for(found.issues)
        thresholds = _thresholds(settings)
        return (
            events.TeamStarted(
                pipeline=pipeline,
                method=found.method,
                issues=found.issues,
                thresholds=thresholds,
                separately=found.separately,
            ),
        )

    def settings_changed(self, state: State, settings: Settings) -> Sequence[Event]:
        thresholds = _thresholds(settings)
        return () if thresholds == issue_part(state).thresholds else (events.ThresholdsChanged(thresholds),)

    def roles_needed(self, state: State) -> set[str]:
        audits = issue_part(state).pipeline is not Pipeline.quick
        return {role for role in WORKERS if audits or role is not Role.reviewer}

    def agents_needed(self, state: State) -> set[str]:
        """With the method `auto`, the solutions decide which of two builds."""
        part, builds = issue_part(state), state.tasks.of_role(Role.implementer)
        is_open = part.method == AUTO and not any(task.agent for task in builds)
        return {rules.SMALL, rules.LARGE} if is_open else set()


ISSUES = IssueTeam()
BUILDER = Role.implementer
"""The role whose agent the execution method names."""
