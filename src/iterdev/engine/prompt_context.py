"""Collects what only the shell knows when a prompt is made: the board, the change, the repository's conventions."""

import json
from functools import partial
from pathlib import Path

from iterdev.agents import registry
from iterdev.core import conventions
from iterdev.core.prompts import CHANGED_SHOWN, DIFF_SHOWN, PromptContext, ShownChange
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.engine.repository import Repository
from iterdev.host.git import commits
from iterdev.host.threads import in_thread
from iterdev.store.session_folder import discoveries
from iterdev.teams.contract import Team


class PromptContexts:
    """Makes the context of every prompt of a session; what seldom changes is read once."""

    def __init__(self, repository: Repository, folder: Path) -> None:
        self._top, self._settings, self._folder = repository.top, repository.settings, folder
        self._redact = repository.redact
        self._instructions = repository.instructions()
        self._changed: tuple[str, tuple[str, ...]] = ("", ())
        self._conventions: tuple[str, ...] | None = None

    async def make(self, state: State, team: Team, task: Task, *, agent: str, checkpoint: str) -> PromptContext:
        return await in_thread(self._make, state, team, task, agent=agent, checkpoint=checkpoint)

    def _make(self, state: State, team: Team, task: Task, *, agent: str, checkpoint: str) -> PromptContext:
        base, tip, dumps = state.branch.base, state.branch.tip, partial(json.dumps, ensure_ascii=False)
        found = self._discoveries()
        read_by_itself = registry.reads(agent, self._settings.agents, self._top)
        return PromptContext(
            board=discoveries.NAME,
            discoveries=tuple(f"- {one.worker} {one.type}: {dumps(one.data, default=str)}" for one in found),
            changed=self._changed_files(base, tip),
            instructions=self._instructions.get(task.role, ""),
            checkpoint=checkpoint,
            conventions=conventions.unread(self._convention_files(base), read_by_itself),
            test_command=self._settings.project.test or "",
            baseline=team.baseline(state),
            change=self._shown_change(state, team, task),
        )

    def _discoveries(self) -> list[discoveries.Line]:
        """Without secrets, before they are cut: agents add lines themselves."""
        return [self._redact.struct(line) for line in discoveries.read(self._folder / discoveries.NAME)]

    def _changed_files(self, base: str, tip: str) -> tuple[str, ...]:
        """The files that the session has changed so far; git is called once for each landing."""
        if self._changed[0] != tip:
            self._changed = (tip, commits.changed_files(self._top, base, tip))
        return self._changed[1]

    def _convention_files(self, base: str) -> tuple[str, ...]:
        """Those of the session's base: what an agent writes into one of them is not yet a convention."""
        if self._conventions is None:
            paths = commits.file_names(self._top, base)
            readme = conventions.readme(paths)
            text = commits.file_text(self._top, base, readme) if readme else ""
            self._conventions = conventions.files(paths, text)
        return self._conventions

    def _shown_change(self, state: State, team: Team, task: Task) -> ShownChange | None:
        since, tip = team.change_shown_since(state, task), state.branch.tip
        if since in {"", tip}:
            return None
        others = set(team.files_of_others(state, task))
        changed = set(commits.changed_files(self._top, since, tip)) if others else set[str]()
        left_out = changed & others if changed - others else set[str]()
        diff = commits.diff_text(self._top, since, tip, DIFF_SHOWN, without=left_out, most=CHANGED_SHOWN)
        stat = "" if diff else commits.diff_stat(self._top, since, tip, CHANGED_SHOWN)
        return ShownChange(since=since, tip=tip, stat=stat, diff=diff, left_out=len(left_out))
