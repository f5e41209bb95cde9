"""The whole life of a task: iterdev beside the git commands that no orchestrator can do without, and beside a peer."""

import csv
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path

from msgspec import Struct

import floor
import orkestra
import scratch
from measure import Aim, Effort, Section, ms

AGENT = r"""
scores='{"correctness":9,"completeness":9,"maintainability":9,"security":9}'
if [ "$ITERDEV_ROLE" = developer ]; then echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt"; fi
printf '{"id":"%s","status":"completed","findings":"done","scores":%s}' "$ITERDEV_TASK" "$scores" > "$ITERDEV_RESULT"
"""
SETTINGS = '[run]\nagent = "bench"\n[project]\ntest = "true"\n[agents.bench]\ncommand = ["sh", {agent}]\n'
MEASURED = """\
One `iterdev run --tasks FILE.csv -y -c N --engine beat` on a table of {lives} DEV rows, each with a VERIFY row (test \
command `true`) and a REVIEW row that depend on it; agents are a shell script that writes one file and its result. The \
time of the same command on the same table with every row completed (start-up, session, folder) is taken off and told \
separately. The floor is `git worktree add`, `add`, `commit`, `merge` into a branch checked out elsewhere, `worktree \
remove` and `branch -D`, started from one Python process with N threads. Milliseconds are per life."""
PEER = """\
Orkestra is {version} from PyPI, its kernel driven as its own demo does it, timed without its start-up: the same \
number of tasks, test gate `true`, one review each. Its fake agent is a Python program, started twice per life; the \
last column gives it shell scripts instead, as cheap as ours, so that only the orchestrators differ."""
MEASURING = """
import atexit, pathlib, resource, sys
def write():
    used = resource.getrusage(resource.RUSAGE_SELF)
    pathlib.Path(sys.argv[1]).write_text(str(used.ru_utime + used.ru_stime))
atexit.register(write)
from iterdev.__main__ import start
sys.exit(start(sys.argv[2:]))
"""
"""Writes the processor time of the engine, without that of the processes that it started, to a file."""
CPU = "At concurrency 1, the engine's own process uses {cpu} of CPU per life."
WHY = """\
a life is three attempts (develop, test, review), each in a workspace that is made clean before and looked at after, \
and the user's own checkout is looked at too: {processes:.0f} git processes per life; each agent and each test run has \
a monitor that ends its whole tree, and takes 3 ms of CPU; of the engine's own time 12 % are transactions of the \
journal, 7 to 14 % the files of the session folder, 8 to 12 % the run of the tests with what it makes sure of, \
10 % the commit of a change, 5 % the look at what an attempt left, 5 % the prompts, 1 % the project's environment, \
and the rest is many small looks at files, none above 3 %; with four agents at once it is more: 13 % are workspaces, \
which are moved to another commit more often, and there are merges and three times the switches between threads"""
HEADER = (
    "concurrency",
    "iterdev",
    "git floor",
    "the agents alone",
    "(iterdev - agents) / floor",
    "Orkestra, its fake agent",
    "Orkestra, shell agents",
)
ROWS_PER_LIFE = 3
JUDGED = 4
"""The concurrency from which on throughput is compared with a peer whose agents are as cheap."""


class Bench(Struct, frozen=True, kw_only=True):
    """Gives every run folders of its own."""

    root: Path
    lives: int
    numbers: Iterator[int]

    def folder(self) -> Path:
        return self.root / f"life-{next(self.numbers)}"

    @property
    def agent(self) -> Path:
        return self.root / "agent.sh"

    def iterdev(
        self, concurrency: int, status: str = "pending", trace: str = "", program: tuple[str, ...] = ("iterdev",)
    ) -> float:
        """Seconds of the whole command."""
        root = self.folder()
        repo = scratch.make(root, **{"iterdev.toml": SETTINGS.format(agent=json.dumps(str(self.agent)))})
        if trace:
            with (repo.home / ".gitconfig").open("a") as file:
                file.write(f"[trace2]\n\teventTarget = {trace}\n")
        table = root / "tasks.csv"
        write_table(table, self.lives, status)
        begin = time.perf_counter()
        said = repo.run(*program, "run", "--tasks", table, "-y", "-c", str(concurrency), "--engine", "beat", "--json")
        seconds = time.perf_counter() - begin
        check(said, self.lives)
        return seconds

    def git_processes(self, concurrency: int) -> float:
        """How many git processes a life takes, the start of the session included."""
        traces = self.folder()
        traces.mkdir()
        self.iterdev(concurrency, trace=str(traces))
        return len(list(traces.iterdir())) / self.lives

    def engine_cpu(self) -> float:
        """Seconds of the engine's own process per life: those of a run without lives are taken off."""
        whole, start = self._engine_cpu("pending"), self._engine_cpu("completed")
        return (whole - start) / self.lives

    def _engine_cpu(self, status: str) -> float:
        said = self.folder()
        self.iterdev(1, status, program=(sys.executable, "-c", MEASURING, str(said)))
        return float(said.read_text())

    def floor(self, concurrency: int) -> float:
        return floor.git_floor(self.folder(), self.lives, concurrency)

    def agents(self, concurrency: int) -> float:
        return floor.agents_alone(self.folder(), self.agent, self.lives, concurrency)


def write_table(path: Path, lives: int, status: str) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "description", "deps", "status"))
        for number in range(1, lives + 1):
            writer.writerow((f"DEV-{number:03}", "Write one file", "", status))
            for kind in ("VERIFY", "REVIEW"):
                writer.writerow((f"{kind}-{number:03}", "Look at it", f"DEV-{number:03}", status))


def check(said: str, lives: int) -> None:
    """A run that did not do all of its work must not look fast."""
    counts = json.loads(said)["counts"]
    if counts["completed"] != ROWS_PER_LIFE * lives:
        raise SystemExit(f"iterdev did not complete every task: {counts}")


def measure(effort: Effort, root: Path) -> Section:
    bench = Bench(root=root, lives=effort.lives, numbers=count())
    bench.agent.write_text(AGENT)
    peer = orkestra.installed(effort.cache) if effort.cache else "left out of this run"
    contestants = dict(_contestants(bench, effort.concurrencies, peer))
    seconds = effort.stopwatch.medians(effort.repetitions, contestants)
    found = [_figures(seconds, concurrency, effort.lives) for concurrency in effort.concurrencies]
    processes = {number: bench.git_processes(number) for number in effort.concurrencies}
    cpu, why = bench.engine_cpu(), WHY.format(processes=max(processes.values()))
    return Section(
        title="The whole life of a task",
        measured=MEASURED.format(lives=effort.lives),
        repetitions=f"{effort.repetitions}, the median; git processes and the engine's CPU once",
        header=HEADER,
        rows=tuple(figures.cells for figures in found),
        aims=(
            Aim(claim="the engine's own CPU per life is at most 15 ms", value=cpu * 1000, limit=15, unit="ms", why=why),
            *(_process_aim(number, found, why) for number, found in processes.items()),
            *(aim for figures in found for aim in figures.aims(why)),
        ),
        notes=(*_notes(seconds, effort.concurrencies, peer), CPU.format(cpu=ms(cpu))),
    )


def _process_aim(concurrency: int, processes: float, why: str) -> Aim:
    claim = f"a life at concurrency {concurrency} takes at most 8 git processes"
    return Aim(claim=claim, value=processes, limit=8, unit="processes", why=why)


def _contestants(
    bench: Bench, concurrencies: tuple[int, ...], peer: orkestra.Orkestra | str
) -> Iterator[tuple[str, Callable[[], float]]]:
    for number in concurrencies:
        yield f"iterdev {number}", partial(bench.iterdev, number)
        yield f"start {number}", partial(bench.iterdev, number, "completed")
        yield f"floor {number}", partial(bench.floor, number)
        yield f"agents {number}", partial(bench.agents, number)
        if isinstance(peer, orkestra.Orkestra):
            yield f"fake {number}", partial(_peer, bench, peer.with_its_agent, number)
            yield f"shell {number}", partial(_peer, bench, peer.with_a_shell, number)


def _peer(bench: Bench, run: Callable[[Path, int, int], float], concurrency: int) -> float:
    return run(bench.folder(), bench.lives, concurrency)


class Figures(Struct, frozen=True, kw_only=True):
    """Seconds per life at one concurrency."""

    concurrency: int
    iterdev: float
    floor: float
    agents: float
    fake: float | None
    shell: float | None

    @property
    def above_floor(self) -> float:
        """The multiple of the floor that is left when the agents' own time is taken off."""
        return (self.iterdev - self.agents) / self.floor

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            str(self.concurrency),
            ms(self.iterdev),
            ms(self.floor),
            ms(self.agents),
            f"{self.above_floor:.2f}",
            self._beside(self.fake),
            self._beside(self.shell),
        )

    def _beside(self, peer: float | None) -> str:
        return "not measured" if peer is None else f"{ms(peer)} ({peer / self.iterdev:.1f} times)"

    def aims(self, why: str) -> Iterator[Aim]:
        yield Aim(
            claim=f"a life at concurrency {self.concurrency} takes at most 1.3 times the git floor, beside the agents",
            value=self.above_floor,
            limit=1.3,
            unit="times the floor",
            why=why,
        )
        if self.fake is not None:
            yield Aim(
                claim=f"a life at concurrency {self.concurrency} is at least 5 times faster than with Orkestra",
                value=self.fake / self.iterdev,
                limit=5,
                unit="times faster",
                at_least=True,
                why=why,
            )
        if self.shell is not None and self.concurrency >= JUDGED:
            yield Aim(
                claim=f"a life at concurrency {self.concurrency} is at least 2.5 times faster than with Orkestra, "
                "with equally cheap agents",
                value=self.shell / self.iterdev,
                limit=2.5,
                unit="times faster",
                at_least=True,
                why=why,
            )


def _figures(seconds: Mapping[str, float], concurrency: int, lives: int) -> Figures:
    def per_life(name: str) -> float | None:
        whole = seconds.get(f"{name} {concurrency}")
        return None if whole is None else whole / lives

    return Figures(
        concurrency=concurrency,
        iterdev=(seconds[f"iterdev {concurrency}"] - seconds[f"start {concurrency}"]) / lives,
        floor=seconds[f"floor {concurrency}"] / lives,
        agents=seconds[f"agents {concurrency}"] / lives,
        fake=per_life("fake"),
        shell=per_life("shell"),
    )


def _notes(
    seconds: Mapping[str, float], concurrencies: tuple[int, ...], peer: orkestra.Orkestra | str
) -> tuple[str, ...]:
    start = statistics.median(seconds[f"start {number}"] for number in concurrencies)
    own = f"The command itself, without any life, takes {ms(start)}: start-up, session, folder, supervisor, report."
    if isinstance(peer, str):
        return own, f"Orkestra was not measured: {peer}."
    return own, PEER.format(version=peer.version)
