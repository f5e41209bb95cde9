"""Runs the test suites of a workspace: on the base, and on the change with the proof that the change was tested."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.core.errors import HostError
from iterdev.core.verification import SuiteReport, Verification, judge
from iterdev.execution.context import Attempt
from iterdev.execution.workspace_setup import update_environment
from iterdev.host.environments import environment, proof
from iterdev.host.git import worktrees
from iterdev.host.processes.spawn import ProgramResult, run
from iterdev.host.test_suites.find import concerned, find, in_order
from iterdev.host.test_suites.invocations import configured
from iterdev.host.test_suites.run import behind_npm, measure, only
from iterdev.host.test_suites.suite import Suite
from iterdev.host.threads import in_thread

PROBE_LIMIT = 20.0
"""Seconds to find out whether a test runner is there, or where it imports modules from."""
RERUNS = 2
"""How often a failing test is run again alone."""
MOST_RERUN = 50
"""With more failing tests than this, chance is not the reason."""
PYTHON = frozenset({"pytest", "unittest"})


class SuiteRuns(Struct):
    attempt: Attempt
    doubts: dict[str, None] = {}
    """What the user should know about the test runs, each once."""

    async def find(self) -> tuple[Suite, ...]:
        """The configured suite, or those that the files of the work tree indicate; what the change concerns first."""
        job = self.attempt.job
        if command := job.settings.project.test:
            return (configured(command),)
        works = partial(self._works, asyncio.get_running_loop())
        return in_order(await in_thread(find, self.attempt.workspace.tree, works), job.changed)

    async def on_base(self, suites: Sequence[Suite]) -> tuple[SuiteReport, ...]:
        """The tests as they were before the session, so that old failures are not blamed on it.

        Suites that only the base has are run too: the change may have removed them.
        """
        job = self.attempt.job
        await self.move_to(job.session_base)
        reports = await self._measure(_united(suites, await self.find()))
        await self.move_to(job.base)
        return reports

    async def on_change(self, suites: Sequence[Suite], baseline: Sequence[SuiteReport]) -> Verification:
        """What the tests say about the work tree as it is."""
        before = {(base.folder, base.command): base for base in baseline}
        known = _united(suites, [_suite(base) for base in baseline])
        reports = [
            await self._without_flaky(suite, report, before.get((suite.folder, suite.command)))
            for suite, report in zip(known, await self._measure(known, prove=True), strict=True)
        ]
        matters = {suite.folder for suite in concerned(known, self.attempt.job.changed)}
        prepared = environment.current(self.attempt.workspace)
        verification = judge(reports, baseline, matters)
        note = verification.note
        if verification.pass_rate is None and prepared.problems:
            note = f"{note} {'; '.join(prepared.problems)}".strip()
        return msgspec.structs.replace(verification, note=note, environment=prepared.described)

    async def move_to(self, commit: str) -> None:
        """Makes the work tree exactly the commit, with its environment."""
        await in_thread(worktrees.reset, self.attempt.context.top, self.attempt.workspace.tree, commit)
        await update_environment(self.attempt, commit)

    async def _measure(self, suites: Sequence[Suite], *, prove: bool = False) -> tuple[SuiteReport, ...]:
        """Runs the suites; what the tests write into the work tree is removed again."""
        tree = self.attempt.workspace.tree
        commit = await in_thread(worktrees.staged, tree)
        reports = [await self._proven(suite) if prove else await self._run_suite(suite) for suite in suites]
        await in_thread(worktrees.restore_staged, tree, commit)
        return tuple(reports)

    async def _run_suite(self, suite: Suite, **variables: str) -> SuiteReport:
        attempt, workspace = self.attempt, self.attempt.workspace
        with attempt.effect("run tests", command=suite.command):
            return await measure(
                suite,
                workspace.tree,
                run=self._run,
                scratch=workspace.scratch,
                env=attempt.environment() | variables,
                limit=attempt.job.settings.limits.test,
            )

    async def _proven(self, suite: Suite) -> SuiteReport:
        """A report with a doubt if the tests did not use the code of the workspace."""
        tree, recorded = self.attempt.workspace.tree, self.attempt.workspace.scratch / "loaded-modules"
        root, changed = tree / suite.folder, self.attempt.job.changed
        recorded.unlink(missing_ok=True)
        python = suite.kind in PYTHON
        report = await self._run_suite(
            suite, **(proof.recording(tree, recorded, changed, suite.folder) if python else {})
        )
        judgements = [proof.judge_node(root), proof.judge_paths(root)]
        if python:
            judgements.append(await self._imports(suite.folder, recorded))
        for judgement in judgements:
            match judgement:
                case proof.NotShown(reason):
                    return msgspec.structs.replace(report, doubt=reason)
                case proof.Proven(warnings):
                    self.doubts |= dict.fromkeys(warnings)
        return report

    async def _imports(self, folder: str, recorded: Path) -> proof.Judgement:
        tree, changed = self.attempt.workspace.tree, self.attempt.job.changed
        if loaded := await in_thread(proof.read, recorded):
            return proof.judge(tree, changed, loaded, folder)
        names = proof.probed(tree, changed, folder)
        if not names:
            return proof.Proven()
        env, argv = self.attempt.environment(), ("python3", "-c", proof.PROBE, *names)
        found = await self._run(argv, cwd=str(tree / folder), env=env, limit=PROBE_LIMIT)
        return proof.judge_probe(tree, changed, found.stdout, folder)

    async def _without_flaky(self, suite: Suite, report: SuiteReport, base: SuiteReport | None) -> SuiteReport:
        """A test that fails now and did not before is run again alone; one that then passes is flaky."""
        known = frozenset(base.failed if base else ())
        failing = [test for test in report.failed if test not in known]
        runnable = await in_thread(behind_npm, suite, self.attempt.workspace.tree)
        for _ in range(RERUNS):
            alone = only(runnable, failing) if 0 < len(failing) <= MOST_RERUN else None
            if alone is None:
                break
            (again,) = await self._measure([alone])
            report = _with_flaky(report, [test for test in failing if test in again.passed])
            failing = [test for test in failing if test not in again.passed]
        return report

    async def _run(self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float) -> ProgramResult:
        """Runs a program of the workspace; its output is cut later, so secrets are removed first."""
        self.attempt.workspace.scratch.mkdir(parents=True, exist_ok=True)
        spawn = self.attempt.spawn(network=self.attempt.permissions.network, scratch=True)
        done = await run(spawn, argv, cwd=cwd, env=env, limit=limit)
        return msgspec.structs.replace(done, stdout=self._clean(done.stdout), stderr=self._clean(done.stderr))

    def _works(self, loop: asyncio.AbstractEventLoop, argv: Sequence[str]) -> bool:
        """Whether a program of the workspace succeeds; called from a thread."""
        tree, env = str(self.attempt.workspace.tree), self.attempt.environment()
        try:
            run = self._run(argv, cwd=tree, env=env, limit=PROBE_LIMIT)
            return asyncio.run_coroutine_threadsafe(run, loop).result().code == 0
        except HostError:
            return False

    def _clean(self, output: bytes) -> bytes:
        return self.attempt.context.redact(output.decode("utf-8", "replace")).encode()


def _suite(report: SuiteReport) -> Suite:
    return msgspec.structs.replace(configured(report.command), folder=report.folder)


def _united(suites: Sequence[Suite], others: Sequence[Suite]) -> tuple[Suite, ...]:
    """All of them, each command in each folder once."""
    known = {(suite.folder, suite.command): suite for suite in (*others, *suites)}
    order = dict.fromkeys((suite.folder, suite.command) for suite in (*suites, *others))
    return tuple(known[key] for key in order)


def _with_flaky(report: SuiteReport, tests: Sequence[str]) -> SuiteReport:
    failed = tuple(test for test in report.failed if test not in tests)
    return msgspec.structs.replace(
        report,
        passed=(*report.passed, *tests),
        failed=failed,
        flaky=(*report.flaky, *tests),
        exit_code=report.exit_code if failed or not tests else 0,
    )
