"""Random sessions of the development team for the simulator: how they begin, and what its agents hand in."""

from random import Random

import msgspec
from tests.core.conftest import a_design, done, measured, review
from tests.core.simulator import AGENTS, WRITTEN

from iterdev.core.request import Request, new_session, policy, session_facts
from iterdev.core.results import LearnedTexts, Usage
from iterdev.core.session import events as session_events
from iterdev.core.session.attempts import Success
from iterdev.core.session.tasks import Fault, Task, checked
from iterdev.core.settings import AgentSettings, Limits, RoleSettings, Run, Settings, TimeLimits
from iterdev.core.types import Engine, Mode, SessionId, Status, TaskId, TaskKind
from iterdev.teams.development.results import Milestone
from iterdev.teams.development.roles import WORKERS, Fields, Pipeline, Role, fields
from iterdev.teams.development.team import DEVELOPMENT

NAMES = {
    Role.architect: ("DESIGN-{:03d}",),
    Role.developer: ("DEV-{:03d}", "DEV-{}", "DEV-fix-{}"),
    Role.tester: ("VERIFY-{:03d}",),
    Role.reviewer: ("REVIEW-{:03d}", "REVIEW-{}"),
    Role.gc_controller: ("GC-CHECK-{:03d}",),
}


def a_table(chance: Random, size: int) -> list[Task]:
    """Rows without a fault, in any order; each depends on some of those that were made shortly before it."""
    pipelines = chance.choice(((Pipeline.sprint,), (Pipeline.multi_sprint,), tuple(Pipeline)))
    sprints = chance.choice((1, 1, 2))
    rows: list[Task] = []
    for number in range(1, size + 1):
        role = chance.choice(list(Role))
        near = rows[-6:]
        deps = tuple(row.id for row in chance.sample(near, chance.randint(0, min(3, len(near)))))
        talks = role is Role.gc_controller or chance.random() < 0.1
        rows.append(
            Task(
                id=TaskId(chance.choice(NAMES[role]).format(number)),
                title=f"row {number}",
                description="work",
                role=role,
                fields=Fields(
                    pipeline=chance.choice(pipelines),
                    sprint=chance.randint(1, sprints),
                    round=int(role is Role.developer and chance.random() < 0.1),
                ),
                kind=TaskKind.decision if role is Role.gc_controller else TaskKind.work,
                deps=deps,
                context_from=deps,
                mode=Mode.interactive if talks else Mode.csv_wave,
            )
        )
    chance.shuffle(rows)
    return rows


def some_agents(chance: Random) -> dict[str, AgentSettings]:
    """Agents of which some have the same provider; each may have one of the later ones to take over."""
    return {
        name: AgentSettings(
            command=(chance.choice(AGENTS),),
            fallback=chance.choice((None, *AGENTS[place + 1 :])) if place < 3 else None,
        )
        for place, name in enumerate(AGENTS)
    }


def a_beginning(chance: Random, size: int) -> list[session_events.Event]:
    """The first events of a session, as the command line would make them."""
    rows: tuple[session_events.RowEdit, ...] = ()
    if chance.random() < 0.6:
        statuses = WRITTEN if chance.random() < 0.1 else (Status.pending,)
        tasks = checked(a_table(chance, size))
        assert not isinstance(tasks, Fault), tasks
        rows = tuple(session_events.RowEdit(task=row, status=chance.choice(statuses)) for row in tasks)
    request = Request(
        requirement="Refactor across modules",
        auto=chance.random() < 0.5,
        concurrency=chance.randint(1, 5),
        pipeline=chance.choice((None, *Pipeline)),
        engine=chance.choice(list(Engine)),
    )
    settings = Settings(
        run=Run(
            agent=chance.choice(AGENTS),
            budget_tokens=chance.choice((None, None, None, 60)),
            task_budget_tokens=chance.choice((None, None, None, 15)),
            day_budget_tokens=chance.choice((None, None, None, 90)),
        ),
        roles={role: RoleSettings(agent=chance.choice((None, *AGENTS))) for role in WORKERS},
        agents=some_agents(chance),
        limits=Limits(rounds=chance.randint(0, 3), wave=chance.choice((100_000, 900))),
    )
    facts = {"team": DEVELOPMENT.name, "name": SessionId("ids-x-20260308"), "base": "b", "branch": "main"}
    session = session_facts(request, **facts, agents={}, by_hand=bool(rows))
    if rows:
        request = msgspec.structs.replace(request, pipeline=fields(rows[0].task).pipeline)
    limits = policy(settings, WORKERS, TimeLimits(), auto=request.auto, concurrency=request.concurrency)
    return new_session(session, limits, DEVELOPMENT.started(request, settings, {}), rows)


def work(chance: Random, task: Task) -> Success:
    """What an agent of the development team hands in."""
    writes = task.role in {Role.developer, Role.tester} and chance.random() < 0.7
    facts: dict[str, object] = {
        "commit": f"commit {task.id}" if writes else None,
        "changed": ("a.py",) if writes else (),
        "usage": Usage(input_tokens=10, output_tokens=1),
        "wisdom": LearnedTexts(learnings=("remember",)) if writes else None,
    }
    match task.role:
        case Role.architect:
            goals = chance.choice((0, 0, 2, 3))
            milestones = tuple(Milestone(title=f"goal {goal}", tasks=()) for goal in range(goals))
            facts["design"] = msgspec.structs.replace(a_design(), milestones=milestones)
        case Role.tester:
            facts["verification"] = measured(chance.choice((1.0, 0.95, 0.94, 0.0, None)))
            facts["iterations"] = int(writes)
        case Role.reviewer:
            severities = chance.choices(("critical", "HIGH", "medium", "low"), k=chance.choice((0, 0, 1, 2)))
            facts["review"] = review(chance.choice((9.0, 7.0, 6.9, 2.0)), *severities)
    return done(f"findings of {task.id}", **facts)
