"""One trivial attempt of a real coding agent in iterdev, beside the bare program; a scripted model answers both."""

import json
import time
from functools import partial
from itertools import count
from pathlib import Path

import scratch
from iterdev.agents.scripted.script import load
from iterdev.conformance.agent_setup import configure_agent
from iterdev.conformance.model.server import serving
from iterdev.core.session.events import AttemptEnded, AttemptStarted
from iterdev.core.types import SessionId
from iterdev.store.journal import Journal
from measure import Aim, Effort, Section, ms

HERE = Path(__file__).resolve().parent
PROGRAM = next(HERE.parent.glob(".agents/node_modules/@anthropic-ai/claude-code-*/claude"), None)
"""As `make test` installs it."""
MEASURED = """\
Claude Code, answered at once by the scripted model on loopback. Bare: `claude -p` with one prompt and a schema for \
its answer, from start to exit. In iterdev: one REVIEW row of a table, from the journal's entry that the attempt \
started to the one that it ended: workspace, agent with the team's tools, result, looks at workspace and checkout. The \
whole command adds the start of Python, the session, its folder and the report."""
WHY = "the workspace is a new worktree, and the agent is asked for its version and given the team's tools"
TABLE = "id,description\nREVIEW-001,Look at it\n"


def measure(effort: Effort, root: Path) -> Section:
    if PROGRAM is None:
        return Section(
            title="One attempt",
            measured=MEASURED,
            repetitions="none",
            header=("",),
            rows=(("left out: `make test` installs it",),),
        )
    attempts: list[float] = []
    with serving(load(HERE / "attempt.toml", "model")) as model:
        folders = count()

        def command() -> float:
            folder = root / f"attempt-{next(folders)}"
            seconds, attempt = _in_iterdev(folder, model.url)
            attempts.append(attempt)
            return seconds

        bare = partial(_bare, root, model.url, folders)
        seconds = effort.stopwatch.medians(effort.repetitions, {"bare": bare, "command": command})
    attempt = sorted(attempts)[len(attempts) // 2]
    more = attempt - seconds["bare"]
    return Section(
        title="One attempt",
        measured=MEASURED,
        repetitions=f"{effort.repetitions}, the median",
        header=("", "time"),
        rows=(
            ("the bare program", ms(seconds["bare"])),
            ("one attempt in iterdev", ms(attempt)),
            ("the whole command", ms(seconds["command"])),
        ),
        aims=(
            Aim(
                claim="an attempt takes at most 0.1 s more than the bare program",
                value=max(more, 0.0),
                limit=0.1,
                unit="s",
                why=WHY,
            ),
        ),
    )


def environment(repo: scratch.Scratch, url: str) -> dict[str, str]:
    programs = repo.home / "bin"
    programs.mkdir(exist_ok=True)
    if PROGRAM and not (programs / "claude").exists():
        (programs / "claude").symlink_to(PROGRAM)
    path = {"PATH": f"{programs}:{repo.environment['PATH']}"}
    return repo.environment | configure_agent(url, "claude", repo.home) | path


def _bare(root: Path, url: str, folders: "count[int]") -> float:
    repo = scratch.make(root / f"bare-{next(folders)}")
    schema = json.dumps({"type": "object", "properties": {"done": {"type": "boolean"}}})
    flags = ("--output-format", "json", "--strict-mcp-config", "--setting-sources", "", "--json-schema", schema)
    begin = time.perf_counter()
    repo.run(str(PROGRAM), "-p", "Say that you are done", *flags, environment=environment(repo, url))
    return time.perf_counter() - begin


def _in_iterdev(folder: Path, url: str) -> tuple[float, float]:
    repo = scratch.make(folder, **{"iterdev.toml": '[run]\nagent = "claude"\n'})
    table = folder / "tasks.csv"
    table.write_text(TABLE)
    begin = time.perf_counter()
    said = repo.run("iterdev", "run", "--tasks", table, "-y", "--json", environment=environment(repo, url))
    seconds = time.perf_counter() - begin
    if json.loads(said)["counts"]["completed"] != 1:
        raise SystemExit(f"iterdev did not complete the attempt: {said}")
    return seconds, _attempt(repo.top, SessionId(json.loads(said)["session"]))


def _attempt(top: Path, session: SessionId) -> float:
    journal = Journal(top / ".workflow" / "iterdev.db")
    entries = journal.read(session)
    journal.close()
    started, ended = (
        next(entry.at for entry in entries if isinstance(entry.event, kind)) for kind in (AttemptStarted, AttemptEnded)
    )
    return ended - started
