"""Makes the job of an attempt: all that an executor has to know of it."""

import json
from pathlib import Path

from msgspec.structs import replace

from iterdev.core import ids, prompts
from iterdev.core.collaboration import external_packages
from iterdev.core.limits import budget
from iterdev.core.rules import conflict_tasks, outcomes
from iterdev.core.rules.schedule import Start
from iterdev.core.session.events import AttemptStarted
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.engine.prompt_context import PromptContexts
from iterdev.engine.repository import Repository
from iterdev.engine.team_tools import stored_checkpoint
from iterdev.execution.contract import Job
from iterdev.teams.contract import Team


class Jobs:
    def __init__(self, repository: Repository, folder: Path, team: Team) -> None:
        self._settings, self._folder, self._team = repository.settings, folder, team
        self._redact = repository.redact
        self._contexts = PromptContexts(repository, folder)

    async def make_again(self, state: State, started: AttemptStarted) -> Job:
        """The job of an open attempt, on the commit that it began with."""
        task, number = state.tasks.plan[started.task], started.number
        found = stored_checkpoint(state, self._folder, task.id) if task.id in state.checkpoints else ""
        checkpoint = "" if isinstance(found, str) else json.dumps(found[1], ensure_ascii=False)
        command = Start(task=task.id, number=number, limit=state.policy.attempt_limit, agent=started.agent)
        then = replace(state, branch=replace(state.branch, tip=started.base))
        return replace(await self.make(then, task, command, checkpoint), fence=started.fence)

    async def make(self, state: State, task: Task, command: Start, checkpoint: str) -> Job:
        session, team = state.session, self._team
        role, schema = team.roles[task.role], team.result_schema(task.role)
        context = await self._contexts.make(state, team, task, agent=command.agent, checkpoint=checkpoint)
        needs = external_packages.needed(state.packages, state.tasks.ancestors(task.id)) if role.writes else ()
        prompt = prompts.render(state, task, role, context, team.prompt_parts(state, task, context), schema)
        return Job(
            session=session.id,
            shared_name=ids.shared_name(session.id, session.suffix),
            task=task,
            role=role,
            number=command.number,
            agent=command.agent,
            settings=self._settings,
            base=state.branch.tip,
            session_base=state.branch.base,
            # Here, because another host knows other secrets.
            prompt=self._redact(prompt),
            issues=team.issues_of(task),
            schema=schema,
            limit=command.limit,
            allowance=budget.allowance(state.policy, state.spending, state.tasks.progress[task.id].usage),
            time_limits=self._settings.time_limits(team.time_limits),
            changed=context.changed,
            merge=conflict_tasks.merge_of(state, task.id),
            earlier=prompts.named_commits(state, task.id),
            planned=team.planned_files(state, task),
            commit_body=team.commit_body(state, task),
            baseline=team.baseline(state),
            pass_rate=team.pass_rate(state),
            replaceable=bool(outcomes.other_agents(state, task.id, command.agent)),
            needs=needs,
            news_of=tuple(one for one in needs if state.packages.latest(one) is None),
            overridden=tuple(state.packages.overridden),
        )
