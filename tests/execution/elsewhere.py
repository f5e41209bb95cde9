"""iterdev with an executor that runs attempts elsewhere: `python -m tests.execution.elsewhere run ...`.

Each attempt runs in a process of its own, with another HOME and its own clone, and sees neither the user's checkout nor
the session folder, the journal or the workspaces of the engine. What it may ask of its session goes over a pipe.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path

import anyio
import msgspec
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from iterdev.agents.contract import AgentEvent, ToolServer
from iterdev.agents.registry import make_present
from iterdev.core.results import Result, Usage
from iterdev.core.session.attempts import Report
from iterdev.core.settings import AgentSettings
from iterdev.core.types import TaskId
from iterdev.engine.effects import Effects
from iterdev.execution import wire_format
from iterdev.execution.attempt import run_attempt
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Executor, Job, ToolAccess
from iterdev.execution.landing_test import run_landing_test
from iterdev.host import paths, secrets
from iterdev.host.git import landing
from iterdev.host.processes.spawn import Supervisor
from iterdev.host.workspaces.pool import Pool
from iterdev.host.workspaces.ports import Ports
from iterdev.store.session_folder import discoveries
from iterdev.surfaces.cli.main import run

Document = dict[str, object]
JOB = "job"
AGENTS = "agents.json"
"""What this host knows of agents: their commands are in no order."""


def git(*args: str, cwd: Path) -> str:
    done = subprocess.run(["git", *args], cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def job_from(text: str) -> Job:
    return wire_format.decode(b64decode(text), wire_format.Order).job


def as_line(message: wire_format.Message) -> str:
    return b64encode(wire_format.encode(message)).decode()


class ElsewhereExecutor:
    """The engine's side: hands out jobs, answers questions, and fetches the commits that attempts made."""

    where = ""

    def __init__(self, context: AttemptContext, group: TaskGroup, root: Path) -> None:
        self._context, self._group, self._root = context, group, root
        self._hub = root / "hub.git"
        git("init", "-q", "--bare", str(self._hub), cwd=root)
        self._send, self._receive = anyio.create_memory_object_stream[Report](1000)
        self._cancels: dict[TaskId, anyio.Event] = {}
        self._numbers = count(1)
        self._pushing = anyio.Lock()

    async def lacking(self, _: Collection[str]) -> Mapping[str, str]:
        return {}

    async def submit(self, job: Job, **_: bool) -> None:
        self._cancels[job.task.id] = anyio.Event()
        self._group.start_soon(self._run, job)

    async def report(self) -> Report:
        return await self._receive.receive()

    async def cancel(self, task: TaskId) -> None:
        if event := self._cancels.get(task):
            event.set()

    def close(self) -> None:
        self._send.close()
        self._receive.close()

    async def _run(self, job: Job) -> None:
        top, refs = self._context.top, f"refs/iterdev/{job.session}/*"
        commits = {job.base, job.session_base, *([job.merge.commit] if job.merge else [])}
        given = [f"{commit}:refs/heads/given-{commit}" for commit in commits]
        push = partial(git, "push", "-q", "-f", str(self._hub), *given, f"{refs}:{refs}", cwd=top)
        async with self._pushing:
            await anyio.to_thread.run_sync(push)
        report = await self._in_another_process(job)
        own = f"refs/iterdev/{job.session}/{job.task.id}/*"
        await anyio.to_thread.run_sync(partial(git, "fetch", "-q", str(self._hub), f"+{own}:{own}", cwd=top))
        self._cancels.pop(job.task.id, None)
        self._send.send_nowait(report)

    async def _in_another_process(self, job: Job) -> Report:
        home = self._root / f"home-{next(self._numbers)}"
        home.mkdir()
        (home / AGENTS).write_bytes(msgspec.json.encode(job.settings.agents))
        (home / ".gitconfig").write_text("[user]\n\tname = Another host\n\temail = host@example.invalid\n")
        # The engine's state folder has its workspaces; the checkout has the session folder and the journal.
        hidden = [str(path) for path in (self._context.top, paths.state_root()) if path.exists()]
        masks = [word for path in hidden for word in ("--tmpfs", path)]
        argv = [
            "bwrap",
            "--dev-bind",
            "/",
            "/",
            *masks,
            "--bind",
            str(self._root),
            str(self._root),
            "--chdir",
            str(home),
        ]
        argv += [sys.executable, "-m", "tests.execution.elsewhere", "--attempt", str(self._hub), *hidden]
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "TMPDIR") if name in os.environ}
        env = kept | {"HOME": str(home), "ITERDEV_HOME": str(home / "iterdev"), "GIT_CONFIG_NOSYSTEM": "1"}
        async with self._context.spawn(argv, cwd=str(self._root), env=env) as process:
            order = wire_format.order_of(job, str(self._hub), heartbeat_timeout=30)
            await process.write(as_line(order).encode() + b"\n")
            async with anyio.create_task_group() as group:
                group.start_soon(self._forward_cancel, job.task.id, process)
                report = await self._converse(job, process)
                group.cancel_scope.cancel()
        shutil.rmtree(home, ignore_errors=True)
        return report

    async def _forward_cancel(self, task: TaskId, process: object) -> None:
        await self._cancels[task].wait()
        await process.write(b'{"cancel": true}\n')

    async def _converse(self, job: Job, process: object) -> Report:
        link, rest, errors = self._context.link, b"", b""
        async with link.tools(job) as tools, link.documents(job) as folder:
            async for name, chunk in process.output():
                if name == "stderr":
                    errors += chunk
                    continue
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    asked = json.loads(line)
                    if "report" in asked:
                        message = wire_format.decode(b64decode(asked["report"]), wire_format.HostReport)
                        return wire_format.report_of(message, job, now=time.time())
                    answer = await self._answer(job, asked, tools, folder)
                    if answer is not None:
                        await process.write(json.dumps(answer).encode() + b"\n")
        raise AssertionError(f"the attempt ended without a report: {errors.decode()[-2000:]}")

    async def _answer(self, job: Job, asked: Document, tools: ToolAccess, folder: Path) -> Document | None:
        match asked:
            case {"said": event}:
                self._context.link.said(job.task.id, job.number, msgspec.convert(event, AgentEvent))
                return None
            case {"environment_made": [made, problems]}:
                self._context.link.environment_made(made, problems)
                return None
            case {"discovered": list(lines)}:
                with (folder / discoveries.NAME).open("a") as board:
                    board.writelines(f"{line}\n" for line in lines)
                return None
            case {"objection": usage}:
                return {"text": await self._context.link.objection(job.task.id, msgspec.convert(usage, Usage))}
            case {"tools": _}:
                return {"url": tools.server.url, "token": tools.server.token}
            case {"take_result": _}:
                result = await tools.take_result()
                return {"result": msgspec.to_builtins(result) if result else None}
            case {"documents": _}:
                return {"files": _documents(folder)}
            case _:
                raise AssertionError(f"unknown question: {asked}")


def _documents(folder: Path) -> dict[str, str]:
    kinds = {".md", ".json", ".ndjson", ".csv"}
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix in kinds]
    return {str(path.relative_to(folder)): path.read_text(errors="replace") for path in files}


def _root(top: Path) -> Path:
    """The same folder for every run of a repository, so that what a killed one left is found and deleted."""
    return Path(os.environ["TMPDIR"]) / f"elsewhere-{sha256(str(top).encode()).hexdigest()[:12]}"


def bring_back(top: Path) -> None:
    """Commits what attempts of a killed engine left on the other host, and fetches it."""
    for home in _root(top).glob("home-*"):
        job, clone = job_from((home / JOB).read_text()), home / "clone"
        for workspace, borrower in Pool(clone, home / "workspaces", home).leftovers():
            label = landing.Label(
                session=job.session,
                task=job.task.id,
                number=job.number,
                role=job.task.role,
                agent=job.agent,
                title=f"{job.task.title} (interrupted)",
            )
            landing.keep_interrupted(clone, workspace.tree, borrower.base, label)
        own = f"refs/iterdev/{job.session}/{job.task.id}/*"
        git("fetch", "-q", str(clone), f"{own}:{own}", cwd=top)


@asynccontextmanager
async def elsewhere(context: AttemptContext, group: TaskGroup) -> AsyncIterator[Executor]:
    root = _root(context.top)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    executor = ElsewhereExecutor(context, group, root)
    try:
        yield executor
    finally:
        executor.close()
        shutil.rmtree(root, ignore_errors=True)


class PipeLink:
    """The attempt's side: questions go out on standard output, one JSON document per line, answers come in."""

    def __init__(self, job: Job, answers: MemoryObjectReceiveStream[Document]) -> None:
        self._job, self._answers = job, answers
        self._lock = anyio.Lock()

    def tell(self, document: Document) -> None:
        text = json.dumps(document).encode() + b"\n"
        while text:
            text = text[os.write(1, text) :]

    async def ask(self, document: Document) -> Mapping[str, object]:
        async with self._lock:
            self.tell(document)
            return await self._answers.receive()

    @asynccontextmanager
    async def tools(self, _: Job) -> AsyncIterator[ToolAccess]:
        found = await self.ask({"tools": True})
        yield PipeTools(self, ToolServer(url=str(found["url"]), token=str(found["token"])))

    @asynccontextmanager
    async def documents(self, job: Job) -> AsyncIterator[Path]:
        folder = Path.home() / f"documents-{job.task.id}"
        files = dict((await self.ask({"documents": True}))["files"])
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        board = folder / discoveries.NAME
        board.touch()
        known = len(board.read_text())
        try:
            yield folder
        finally:
            self.tell({"discovered": board.read_text()[known:].splitlines()})

    async def objection(self, _: TaskId, spent: Usage) -> str:
        return str((await self.ask({"objection": msgspec.to_builtins(spent)}))["text"])

    def said(self, _task: TaskId, _number: int, event: AgentEvent) -> None:
        self.tell({"said": msgspec.to_builtins(event)})

    def environment_made(self, made: Sequence[str], problems: Sequence[str]) -> None:
        self.tell({"environment_made": [made, problems]})

    async def take_result(self) -> Result | None:
        found = (await self.ask({"take_result": True}))["result"]
        return msgspec.convert(found, self._job.role.result) if found else None


class PipeTools:
    def __init__(self, link: PipeLink, server: ToolServer) -> None:
        self._link, self.server = link, server

    def started(self, pid: int) -> None:
        """The engine cannot see a program of this machine."""

    async def take_result(self) -> Result | None:
        return await self._link.take_result()


async def attempt_here(hub: Path, hidden: list[str]) -> None:
    """Runs the one attempt that standard input asks for, in a clone of its own."""
    seen = [path for path in hidden if any(Path(path).iterdir())]  # noqa: ASYNC240 - nothing else runs yet
    assert not seen, f"the engine's folders can be seen: {seen}"
    text = await anyio.to_thread.run_sync(sys.stdin.readline)
    job, clone = job_from(text), Path.home() / "clone"
    (Path.home() / JOB).write_text(text)
    agents = msgspec.json.decode((Path.home() / AGENTS).read_bytes(), type=dict[str, AgentSettings])
    git("clone", "-q", "--no-checkout", str(hub), str(clone), cwd=Path.home())
    git("fetch", "-q", "origin", "+refs/iterdev/*:refs/iterdev/*", cwd=clone)
    scope, (send, receive) = anyio.CancelScope(), anyio.create_memory_object_stream[Document](100)
    link = PipeLink(job, receive)
    pool = Pool(clone, Path.home() / "workspaces", paths.temps())
    async with (
        Ports(job.settings.project.ports) as ports,
        Supervisor() as supervisor,
        anyio.create_task_group() as group,
    ):
        group.start_soon(_listen, send, scope)
        context = AttemptContext(
            top=clone,
            agent=partial(make_present, configured=agents, root=clone),
            pool=pool,
            checkout=None,
            ports=ports,
            spawn=supervisor.spawn,
            sandbox=None,
            redact=secrets.redactor(os.environ),
            effect=Effects(),
            link=link,
        )
        report = await (run_landing_test if job.together else run_attempt)(job, context, scope)
        refs = f"refs/iterdev/{job.session}/{job.task.id}/*"
        git("push", "-q", "origin", f"+{refs}:{refs}", cwd=clone)
        link.tell({"report": as_line(wire_format.host_report_of(report, host="another", now=time.time()))})
        group.cancel_scope.cancel()


async def _listen(answers: MemoryObjectSendStream[Document], scope: anyio.CancelScope) -> None:
    """Passes answers on; that the attempt is to be cancelled may come at any time."""
    while line := await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
        document = json.loads(line)
        if document.get("cancel"):
            scope.cancel()
        else:
            await answers.send(document)


def start(arguments: list[str]) -> int:
    if arguments[:1] == ["resume"]:
        bring_back(Path(git("rev-parse", "--show-toplevel", cwd=Path.cwd())))
    return run(arguments, executor=elsewhere)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--attempt"]:
        anyio.run(attempt_here, Path(sys.argv[2]), sys.argv[3:])
        os._exit(0)  # The thread that waits for input does not end by itself.
    sys.exit(start(sys.argv[1:]))
