"""Carries commits between the repository of an engine and the bare mirrors of hosts, through a git remote.

What many ask for at once is pushed or fetched once. Nothing is lost where a ref is taken: on the remote it stays, and
what was to be put under it gets a ref of its own; in the repository of the engine, what was under it does.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess
from typing import Generic, Protocol, TypeVar

import anyio
import anyio.to_thread

from iterdev.core.errors import HostError, UserError
from iterdev.host.git.command import GitFailed, git, git_bytes, own_bare_repositories
from iterdev.host.git.refs import ZERO, move_ref, move_refs

Item = TypeVar("Item")

REPORTS = "_reports"
"""In place of a task: the refs of reports."""
FETCHED = "refs/iterdev-fetched"
"""Where work and reports are while they are fetched."""


PAUSE, LONGEST_PAUSE = 0.2, 5.0
"""Seconds for each of several attempts that ended at about the same time, until those that end next are carried."""
PROBE_SECONDS = 30
AT_ONCE = 500
"""Refs in one command."""
_LOGIN = re.compile(r"^(https?://)[^/@]*@")


class RunGit(Protocol):
    def __call__(
        self, *args: str, cwd: Path, stdin: str | None = None, accept: tuple[int, ...] = (0,)
    ) -> CompletedProcess[str]: ...


def open_mirror(folder: Path) -> Path:
    """The bare repository in the folder, made if it is not there."""
    if not (folder / "HEAD").exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        git("init", "--quiet", "--bare", str(folder), cwd=folder)
    own_bare_repositories.add(folder)
    return folder


def keep_report(top: Path, ref: str, report: bytes) -> tuple[str, str]:
    """Puts the report on an attempt beside the ref of its work; the ref that it is under, and its id."""
    blob = git_bytes("hash-object", "-w", "--stdin", cwd=top, stdin=report).decode().strip()
    name = report_ref(ref)
    if not move_ref(top, name, blob, ZERO) and _resolved(top, name) != blob:
        name = f"{name}-{blob[:12]}"
        move_ref(top, name, blob)
    return name, blob


def kept_reports(top: Path, ref: str) -> list[bytes]:
    """The reports beside the ref of an attempt: its number, and so its ref, may have been given twice."""
    name = report_ref(ref)
    ids = git("for-each-ref", "--format=%(objectname)", name, f"{name}-*", cwd=top).stdout.split()
    return [read_report(top, blob) for blob in ids]


def read_report(top: Path, blob: str) -> bytes:
    return git_bytes("cat-file", "blob", blob, cwd=top, stdin=b"")


def report_ref(ref: str) -> str:
    """The ref of the report on the attempt whose work is under a ref; it leads to a file, and not to a commit."""
    session, task, number = ref.rsplit("/", 2)
    return f"{session}/{REPORTS}/{task}/{number}"


def _resolved(top: Path, ref: str) -> str:
    return git("rev-parse", "--verify", ref, cwd=top).stdout.strip()


class _Batch(Generic[Item]):
    def __init__(self) -> None:
        self.items: list[Item] = []
        self.is_done = self.has_failed = False


class Coalesced(Generic[Item]):
    """One call at a time: what is asked for during a call goes together into the next."""

    def __init__(
        self,
        act: Callable[[tuple[Item, ...]], Awaitable[None]],
        pause: float = 0,
        sleep_until: Callable[[float], Awaitable[None]] = anyio.sleep_until,
    ) -> None:
        """After a call with several items, the next one waits `pause` seconds for each of them: more are coming."""
        self._act, self._next, self._turn = act, _Batch[Item](), anyio.Lock()
        self._pause, self._sleep_until, self._not_before = pause, sleep_until, 0.0

    async def do(self, item: Item) -> None:
        """Returns when a call with the item has succeeded. If one of several fails, each is tried alone."""
        batch = self._next
        batch.items.append(item)
        async with self._turn:
            if batch is self._next:
                if self._not_before:
                    await self._sleep_until(self._not_before)
                self._next, self._not_before = _Batch(), 0.0
            if batch.is_done:
                return
            if not batch.has_failed and len(batch.items) > 1:
                try:
                    await self._act(tuple(batch.items))
                except HostError:
                    batch.has_failed = True
                else:
                    batch.is_done = True
                    if self._pause:
                        self._not_before = anyio.current_time() + min(self._pause * len(batch.items), LONGEST_PAUSE)
                    return
            await self._act((item,))


class GitRemote:
    """A git remote, as seen from a repository or a mirror on this machine."""

    def __init__(self, top: Path, url: str, run: RunGit = git) -> None:
        self._top, self._url, self._run = top, url, run
        self._published: dict[str, tuple[str, ...]] = {}
        """The commits of each session that the remote has, none of which is an ancestor of another."""
        self._publishing, self._pushing = Coalesced(self._publish), Coalesced(self._push, PAUSE)
        self._fetching, self._fetching_work = Coalesced(self._fetch), Coalesced(self._fetch_work, PAUSE)

    async def publish(self, shared_name: str, commits: Iterable[str]) -> None:
        """Sees to it that hosts can fetch the commits."""
        await self._publishing.do((shared_name, tuple(commits)))

    async def push(self, refs: Iterable[str]) -> None:
        """Puts refs on the remote; where one is taken by something else, this one is put beside it."""
        await self._pushing.do(tuple(refs))

    async def fetch_published(self, shared_name: str, commits: Iterable[str]) -> None:
        """Sees to it that commits which an engine has published are here."""
        await self._fetch_under(_given(shared_name, "*"), commits)

    async def fetch_work(self, shared_name: str, session: str, task: str, commits: Iterable[str]) -> None:
        """Brings everything that hosts kept of a task to the refs of its session; an error if a commit is not among it.

        Their numbers may be taken, by attempts of before the journal was lost. No ref leads to the reports here: they
        are found by their ids.
        """
        await self._fetching_work.do((shared_name, session, task))
        await self._require(f"refs/iterdev/{shared_name}/{task}/*", commits)

    async def report_ids(self, ref: str) -> list[str]:
        """The ids of the reports beside the ref of an attempt, on the remote."""
        name = report_ref(ref)
        listed = await self._git("ls-remote", self._url, name, f"{name}-*")
        return [line.split("\t")[0] for line in listed.stdout.splitlines()]

    async def _fetch_under(self, pattern: str, commits: Iterable[str]) -> None:
        wanted = tuple(commits)
        if not await self._is_complete(pattern, wanted):
            await self._fetching.do((f"{pattern}:{pattern}",))
            await self._require(pattern, wanted)

    async def _is_complete(self, pattern: str, commits: tuple[str, ...]) -> bool:
        """Whether refs lead to the commits: git sets them when all files are there too.

        A commit alone may be there before its files, while another fetch goes on or since one was killed.
        """
        words = ("rev-list", "--max-count=1", *commits, "--not", f"--glob={pattern}")
        found = await self._git(*words, accept=(0, 128))
        return found.returncode == 0 and not found.stdout.strip()

    async def _require(self, pattern: str, commits: Iterable[str]) -> None:
        if missing := await self._missing(tuple(commits)):
            raise HostError(
                f'"{self._url}" has no {missing[0]} under {pattern}',
                hint="look whether engine and hosts use the same git remote",
            )

    async def _missing(self, commits: tuple[str, ...]) -> list[str]:
        asked = "".join(f"{commit}^{{commit}}\n" for commit in commits)
        found = await self._git("cat-file", "--batch-check", stdin=asked)
        answers = zip(commits, found.stdout.splitlines(), strict=True)
        return [commit for commit, answer in answers if answer.endswith(" missing")]

    async def _publish(self, asked: tuple[tuple[str, tuple[str, ...]], ...]) -> None:
        heads: dict[str, tuple[str, ...]] = {}
        for session in dict.fromkeys(session for session, _ in asked):
            wanted = (commit for one, commits in asked if one == session for commit in commits)
            everything = dict.fromkeys((*self._published.get(session, ()), *wanted))
            heads[session] = tuple((await self._git("merge-base", "--independent", *everything)).stdout.split())
        new = [
            f"{head}:{_given(session, head)}"
            for session, found in heads.items()
            for head in found
            if head not in self._published.get(session, ())
        ]
        if new:
            await self._git("push", "--quiet", self._url, *new)
        self._published |= heads

    async def _push(self, asked: tuple[tuple[str, ...], ...]) -> None:
        refs = dict.fromkeys(ref for some in asked for ref in some)
        taken = await self._push_new({ref: ref for ref in refs})
        beside = {ref: f"{ref}-{(await self._resolved(ref))[:12]}" for ref in taken}
        if beside and (refused := await self._push_new(beside)):
            raise HostError(
                f'"{self._url}" refused {beside[refused[0]]}',
                hint="give the host the right to write refs/iterdev/* there",
            )

    async def _push_new(self, targets: dict[str, str]) -> list[str]:
        """Pushes each ref to a name that is free, or has the same already; those for which it is taken."""
        free = (f"--force-with-lease={target}:" for target in targets.values())
        pairs = (f"{ref}:{target}" for ref, target in targets.items())
        arguments = ("push", "--porcelain", *free, self._url, *pairs)
        done = await self._git(*arguments, accept=(0, 1))
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        refused = [line[1].partition(":")[0] for line in lines if line[0] == "!"]
        if done.returncode and not refused:
            raise GitFailed(arguments, done.returncode, done.stderr)
        return refused

    async def _fetch(self, patterns: tuple[tuple[str, ...], ...]) -> None:
        asked = dict.fromkeys(one for some in patterns for one in some)
        await self._git("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", self._url, *asked)

    async def _fetch_work(self, asked: tuple[tuple[str, str, str], ...]) -> None:
        """By way of other refs: git does not fetch to one that has something else."""
        works = {f"{FETCHED}/{shared}/{task}": f"refs/iterdev/{session}/{task}" for shared, session, task in asked}
        names = [f"{shared}/{part}" for shared, _, task in asked for part in (task, f"{REPORTS}/{task}")]
        await self._fetch((tuple(f"+refs/iterdev/{name}/*:{FETCHED}/{name}/*" for name in names),))
        folders = dict.fromkeys((*(f"{FETCHED}/{name}" for name in names), *works.values()))
        listed = (await self._git("for-each-ref", "--format=%(refname) %(objectname)", *folders)).stdout
        there = dict(line.split() for line in listed.splitlines())
        moves = _moves(there, works)
        if moves and not await anyio.to_thread.run_sync(partial(move_refs, self._top, *moves)):
            raise HostError(f'"{moves[0][0]}" is being changed by another process', hint="iterdev doctor")
        fetched = "".join(f"delete {name}\n" for name in there if name.startswith(f"{FETCHED}/"))
        await self._git("update-ref", "--stdin", stdin=fetched)

    async def _resolved(self, ref: str) -> str:
        return (await self._git("rev-parse", "--verify", ref)).stdout.strip()

    async def _git(self, *args: str, stdin: str | None = None, accept: tuple[int, ...] = (0,)) -> CompletedProcess[str]:
        return await anyio.to_thread.run_sync(partial(self._run, *args, cwd=self._top, stdin=stdin, accept=accept))


def _moves(there: Mapping[str, str], works: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """How refs have to move so that those of a session lead to what was fetched, and others to what they had before."""
    found = [(works.get(folder), name, ref) for ref in there for folder, _, name in (ref.rpartition("/"),)]
    new = {f"{folder}/{name}": there[ref] for folder, name, ref in found if folder}
    kept = {f"{ref}-{there[ref][:12]}": there[ref] for ref in new if there.get(ref, new[ref]) != new[ref]}
    return [(ref, to, there.get(ref, ZERO)) for ref, to in {**kept, **new}.items() if there.get(ref) != to]


def _given(shared_name: str, commit: str) -> str:
    """The ref under which an engine publishes a commit; no task id begins like its third part."""
    return f"refs/iterdev/{shared_name}/_given/{commit}"


def remote_address(top: Path, remote: str) -> str:
    """The address of a remote that is named, or the address itself; relative ones are those of this machine."""
    if remote in git("remote", cwd=top).stdout.split():
        return git("remote", "get-url", remote, cwd=top).stdout.strip()
    if ":" in remote or "/" in remote:
        return remote
    raise UserError(
        f'This repository has no remote "{remote}", through which hosts get its commits',
        hint=f"git remote add {remote} URL, or set `git` under [remote] in iterdev.toml",
    )


def without_login(address: str) -> str:
    """The address as engines and hosts name it to each other: each logs in as itself."""
    return _LOGIN.sub(r"\1", address)


def probe_remote(top: Path, address: str, name: str) -> None:
    """Puts a ref on the remote, finds it there and deletes it: a server may refuse refs that are no branches."""
    ref = f"refs/iterdev/_probe/{name}"
    try:
        blob = git("hash-object", "-w", "--stdin", cwd=top, stdin=f"{name}\n").stdout.strip()
        git("push", "--quiet", "--force", address, f"{blob}:{ref}", cwd=top, seconds=PROBE_SECONDS)
        found = git("ls-remote", address, ref, cwd=top, seconds=PROBE_SECONDS).stdout.split()
        git("push", "--quiet", address, f":{ref}", cwd=top, seconds=PROBE_SECONDS)
    except GitFailed as error:
        raise HostError(
            f'"{without_login(address)}" refuses refs under refs/iterdev/: {error.message.partition(": ")[2]}',
            hint=f"git push {without_login(address)} HEAD:{ref}",
        ) from error
    if found[:1] != [blob]:
        raise HostError(
            f'"{without_login(address)}" does not show what was pushed to {ref}',
            hint=f"git ls-remote {without_login(address)} {ref}",
        )


def remove_refs(top: Path, address: str, shared_name: str) -> None:
    """Removes the refs of a session from the remote, except those that lead to what is not in the repository."""
    listed = git("ls-remote", address, f"refs/iterdev/{shared_name}/*", cwd=top, seconds=PROBE_SECONDS).stdout
    there = {ref: found for found, ref in (line.split("\t") for line in listed.splitlines())}
    asked = "".join(f"{found}\n" for found in there.values())
    answers = git("cat-file", "--batch-check", cwd=top, stdin=asked).stdout.splitlines()
    known = [ref for ref, answer in zip(there, answers, strict=True) if not answer.endswith(" missing")]
    for part in _parts(known, AT_ONCE):
        leases = (f"--force-with-lease={ref}:{there[ref]}" for ref in part)
        git("push", "--quiet", *leases, address, *(f":{ref}" for ref in part), cwd=top)


def _parts(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
