"""iterdev with an executor that runs attempts elsewhere: `python -m tests.execution.elsewhere run ...`.

This is the engine's side; `other_host.py` is the other one. What is encoded for a host is decoded there, and what an
attempt may ask of its session goes over one connection.
"""

import asyncio
import fcntl
import json
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path

import anyio
import msgspec
from anyio.abc import TaskGroup
from tests.execution.other_host import ADDRESS, AT_WORK, LONGEST, Asked, Document, address, as_text, from_text
from tests.places import MADE

from iterdev import __main__
from iterdev.agents.contract import AgentEvent
from iterdev.core.results import Usage
from iterdev.core.session.attempts import Report
from iterdev.core.types import TaskId
from iterdev.execution import wire_format
from iterdev.execution.context import AttemptContext
from iterdev.execution.contract import Executor, Job, ToolAccess
from iterdev.host import paths
from iterdev.host.git.command import git
from iterdev.store.session_folder import discoveries

ENGINE, HUB = "engine", "hub.git"


class ElsewhereExecutor:
    """Hands out jobs, answers questions, and fetches the commits that attempts made."""

    where = ""

    def __init__(self, context: AttemptContext, group: TaskGroup, root: Path) -> None:
        self._context, self._group, self._root = context, group, root
        self._hub = str(root / HUB)
        git("init", "-q", "--bare", self._hub, cwd=root)
        self._send, self._receive = anyio.create_memory_object_stream[Report](1000)
        self._connections: dict[TaskId, asyncio.StreamWriter] = {}
        self._numbers = count(1)
        self._pushing = anyio.Lock()

    async def lacking(self, _: Collection[str]) -> Mapping[str, str]:
        return {}

    async def submit(self, job: Job, **_: bool) -> None:
        reader, writer = await asyncio.open_unix_connection(f"\0{os.environ.get(ADDRESS) or address()}", limit=LONGEST)
        self._connections[job.task.id] = writer
        self._group.start_soon(self._run, job, reader, writer)

    async def report(self) -> Report:
        return await self._receive.receive()

    async def cancel(self, task: TaskId) -> None:
        if writer := self._connections.get(task):
            writer.write(b'{"cancel": true}\n')

    def close(self) -> None:
        self._send.close()
        self._receive.close()

    async def _run(self, job: Job, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        top, refs = self._context.top, f"refs/iterdev/{job.session}/*"
        commits = {job.base, job.session_base, *([job.merge.commit] if job.merge else [])}
        given = [f"{commit}:refs/heads/given-{commit}" for commit in commits]
        async with self._pushing:
            push = partial(git, "push", "-q", "-f", self._hub, *given, f"{refs}:{refs}", cwd=top)
            await anyio.to_thread.run_sync(push)
        try:
            report = await self._on_the_host(job, reader, writer)
        finally:
            # Without an engine the attempt ends, and no engine ends before it has.
            with anyio.CancelScope(shield=True):
                writer.close()
                await reader.read()
        own = f"refs/iterdev/{job.session}/{job.task.id}/*"
        await anyio.to_thread.run_sync(partial(git, "fetch", "-q", self._hub, f"+{own}:{own}", cwd=top))
        self._connections.pop(job.task.id, None)
        self._send.send_nowait(report)

    async def _on_the_host(self, job: Job, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Report:
        home = self._root / f"home-{next(self._numbers)}"
        home.mkdir()
        (home / ".gitconfig").write_text("[user]\n\tname = Another host\n\temail = host@example.invalid\n")
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "TMPDIR") if name in os.environ}
        asked = Asked(
            root=str(self._root),
            home=str(home),
            hub=self._hub,
            # The engine's state folder has its workspaces; the checkout has the session folder and the journal.
            hidden=tuple(str(path) for path in (self._context.top, paths.state_root()) if path.exists()),
            order=as_text(wire_format.order_of(job, self._hub, heartbeat_timeout=30)),
            agents=job.settings.agents,
            variables=kept | {"HOME": str(home), "ITERDEV_HOME": str(home / "iterdev"), "GIT_CONFIG_NOSYSTEM": "1"},
        )
        with (Path.home() / MADE).open("a") as made:
            made.write(f"{job.task.id} {job.number}\n")
        writer.write(msgspec.json.encode(asked) + b"\n")
        report = await self._converse(job, reader, writer)
        shutil.rmtree(home, ignore_errors=True)
        return report

    async def _converse(self, job: Job, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Report:
        link = self._context.link
        async with link.tools(job) as tools, link.documents(job) as folder:
            while line := await reader.readline():
                asked = json.loads(line)
                if "report" in asked:
                    message = from_text(asked["report"], wire_format.HostReport)
                    return wire_format.report_of(message, job, now=time.time())
                if answer := await self._answer(job, asked, tools, folder):
                    writer.write(json.dumps(answer).encode() + b"\n")
        raise AssertionError("the attempt ended without a report")

    async def _answer(self, job: Job, asked: Document, tools: ToolAccess, folder: Path) -> Document | None:
        link = self._context.link
        match asked:
            case {"said": event}:
                link.said(job.task.id, job.number, msgspec.convert(event, AgentEvent))
                return None
            case {"environment_made": [made, problems]}:
                link.environment_made(made, problems)
                return None
            case {"discovered": list(lines)}:
                with (folder / discoveries.NAME).open("a") as board:
                    board.writelines(f"{line}\n" for line in lines)
                return None
            case {"objection": usage}:
                return {"text": await link.objection(job.task.id, msgspec.convert(usage, Usage))}
            case {"tools": _}:
                return {"url": tools.server.url, "token": tools.server.token}
            case {"take_result": _}:
                result = await tools.take_result()
                return {"result": msgspec.to_builtins(result) if result else None}
            case {"documents": _}:
                return {"files": _documents(folder)}
            case {"failed": text}:
                raise AssertionError(f"the attempt failed on the other host: {text}")
            case _:
                raise AssertionError(f"unknown question: {asked}")


def _documents(folder: Path) -> dict[str, str]:
    kinds = {".md", ".json", ".ndjson", ".csv"}
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix in kinds]
    return {str(path.relative_to(folder)): path.read_text(errors="replace") for path in files}


def _folders() -> Iterator[Path]:
    """Those of the engines of this user, also of killed ones."""
    return Path(os.environ["TMPDIR"]).glob("elsewhere-*")


def bring_back(top: Path) -> None:
    """Fetches what attempts of killed engines left on the other host, once all of them have ended."""
    for root in _folders():
        with (root / ENGINE).open("a") as engine, (root / AT_WORK).open("a") as attempts:
            try:
                fcntl.flock(engine, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue  # It is alive.
            fcntl.flock(attempts, fcntl.LOCK_EX)
            git("fetch", "-q", str(root / HUB), "+refs/iterdev/*:refs/iterdev/*", cwd=top)
            shutil.rmtree(root, ignore_errors=True)


@asynccontextmanager
async def elsewhere(context: AttemptContext, group: TaskGroup) -> AsyncIterator[Executor]:
    root = Path(os.environ["TMPDIR"]) / f"elsewhere-{os.getpid()}"
    root.mkdir()
    with (root / ENGINE).open("w") as engine:
        fcntl.flock(engine, fcntl.LOCK_EX)
        executor = ElsewhereExecutor(context, group, root)
        try:
            yield executor
        finally:
            executor.close()
            shutil.rmtree(root, ignore_errors=True)


def start(arguments: list[str]) -> int:
    if any(_folders()):
        bring_back(Path.cwd())
    return __main__.start(arguments, elsewhere)


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
