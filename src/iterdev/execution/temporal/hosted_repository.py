"""A repository on a host: a bare mirror, the worktrees of each session, and the remote that commits go through."""

import os
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from iterdev.core import ids
from iterdev.core.errors import HostError
from iterdev.execution import wire_format
from iterdev.execution.contract import Job
from iterdev.execution.kept_work import keep_left
from iterdev.execution.wire_format import LARGEST_DECODED, HostReport
from iterdev.host import known_secrets, paths, secrets
from iterdev.host.git import landing, mirrors
from iterdev.host.git.command import git
from iterdev.host.git.mirrors import GitRemote, open_mirror
from iterdev.host.sandbox import bubblewrap
from iterdev.host.sandbox.bubblewrap import Sandbox
from iterdev.host.workspaces.pool import Pool

IDLE = 600.0
"""Seconds after which the worktrees of a session that has no attempt here are removed."""


class HostedRepository:
    def __init__(self, home: Path, url: str, belongings: str | None) -> None:
        self._home, self._key = home, sha256(url.encode()).hexdigest()[:12]
        self.belongings = Path(belongings).expanduser() if belongings else home / "nothing"
        self.mirror = open_mirror(home / "mirrors" / f"{self._key}.git")
        self.remote = GitRemote(self.mirror, url)
        self._pools: dict[tuple[str, bool], Pool] = {}
        self._used: dict[tuple[str, bool], tuple[int, float]] = {}
        """How many attempts use a pool, and when that was last changed."""

    @cached_property
    def sandbox(self) -> Sandbox:
        return bubblewrap.build(self.mirror, os.environ)

    def redactor(self, job: Job) -> secrets.Redactor:
        return secrets.redactor(os.environ, known_secrets.env_files(self.belongings, job.settings.project.copy))

    def pool(self, job: Job) -> Pool:
        """The worktrees of the job's session."""
        key = job.shared_name, job.settings.run.sandbox
        if key not in self._pools:
            confine = self.sandbox.confine_git if job.settings.run.sandbox else None
            self._pools[key] = self._pool(job.shared_name, confine=confine)
        return self._pools[key]

    def _pool(self, shared_name: str, confine: Callable[[Path], None] | None = None) -> Pool:
        return Pool(self.mirror, self._home / "workspaces" / self._key / shared_name, paths.temps(), confine)

    def use(self, job: Job, change: int) -> None:
        """Counts the attempts at work, so that their worktrees stay."""
        key = job.shared_name, job.settings.run.sandbox
        self._used[key] = self._used.get(key, (0, 0.0))[0] + change, time.monotonic()

    def close_idle(self, seconds: float = IDLE) -> None:
        """Removes the worktrees of sessions that have had no attempt here for a while."""
        now = time.monotonic()
        for key, (count, since) in list(self._used.items()):
            if not count and now - since >= seconds:
                del self._used[key]
                self._pools.pop(key).close()

    def close_left(self) -> None:
        """Removes the worktrees of an earlier host, except those with work that could not be kept."""
        for folder in (self._home / "workspaces" / self._key).glob("*"):
            self._pool(folder.name).close()

    def keep_left(self, job: Job) -> str | None:
        """Commits what an attempt left in a worktree that it did not give back; the commit of its work, if any."""
        pool = self._pool(job.shared_name)
        for workspace, borrower in pool.leftovers():
            if (borrower.task, borrower.number) != (job.task.id, job.number):
                continue
            keep_left(self.mirror, workspace, job.base, _label(job))
            pool.give_back(workspace)
        found = git("rev-parse", "--verify", "--quiet", ref_of(job), cwd=self.mirror, accept=(0, 1))
        return found.stdout.strip() or None

    def keep_report(self, job: Job, report: HostReport) -> tuple[list[str], str]:
        """Puts the report beside the work; all refs of the attempt, which have to be pushed, and the report's id."""
        ref, body = ref_of(job), wire_format.encode(report, most=LARGEST_DECODED)
        name, blob = mirrors.keep_report(self.mirror, ref, body)
        kept = git("for-each-ref", "--format=%(refname)", ref, f"{ref}-*", cwd=self.mirror).stdout.split()
        return [*kept, name], blob

    def kept_reports(self, job: Job) -> Iterator[HostReport]:
        for data in mirrors.kept_reports(self.mirror, ref_of(job)):
            yield wire_format.decode(data, HostReport)


def ref_of(job: Job) -> str:
    return ids.kept_ref(job.shared_name, job.task.id, job.number)


def _label(job: Job) -> landing.Label:
    return landing.Label(
        session=job.session,
        task=job.task.id,
        number=job.number,
        role=job.task.role,
        agent=job.agent,
        title=f"{job.task.title} (interrupted)",
        shared_name=job.shared_name,
    )


class UnknownRepository(HostError):
    def __init__(self, host: str, url: str) -> None:
        super().__init__(
            f'The host "{host}" does not work on "{url}"', hint=f'add [repositories."{url}"] to its host.toml'
        )
