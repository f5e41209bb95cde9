"""What a repository of many files costs: a workspace beside `git worktree add`, and a life in it."""

import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import count
from pathlib import Path

from msgspec import Struct

import life
import scratch
from iterdev.host.git.checkout import STATUS
from measure import Aim, Effort, Section

MEASURED = """\
Processor time, of iterdev and all git processes together, in a repository of that many files in folders of fifty. \
`git worktree add`; a workspace that is made; the same workspace moved to a commit in which one file differs, after \
it was found to be clean, as for the next task. \
A life is that of the section above, at concurrency 1: the processor time of the engine and of the processes that it \
waited for, from the second of {lives} lives to the last. \
A scan is a git process that looks at every file of a worktree; \
looks at the user's own checkout, which take at most a twentieth of the time, are counted apart. Both are those of \
{lives} lives without those of one, by the number of lives between."""
WHY_WARM = "git reads and writes the whole index, which has an entry for each file, and reads the trees that differ"
WHY_SCANS = "after each program that ran in a workspace, git is asked once what it left there"
SCANNING = {"status", "add", "checkout", "reset", "clean", "restore", "diff-files", "update-index", "stash"}
"""Commands with which git looks at every file, unless files are named to it."""
CACHE = """\
Git's untracked cache is not used. It answers only for folders as a whole and without ignored files, of which iterdev \
has to know both: asked like that, git takes {cached:.2f} s with the cache and {plain:.2f} s without it for \
{files:,} files; a scan takes {scan:.2f} s."""
HEADER = ("files", "`git worktree add`", "new", "warm", "times cheaper", "a life", "scans", "looks at the checkout")
WARM = 10
LENT = 3
"""How often a workspace is lent again, and git asked the same."""
AGENT = f"""
if [ "$ITERDEV_ROLE" = developer ]; then cut -d ' ' -f 14-17 "/proc/$(cat "$0.engine")/stat" > "$0.$ITERDEV_TASK"; fi
{life.AGENT}"""
"""Notes what the engine has used when a life begins. To make a workspace takes longer than many lives."""
SCANS = 3
FOLDERS = ("status", "--porcelain", "--untracked-files=normal")
WAYS = {
    "scan": ("-c", "core.untrackedCache=false", *STATUS, "--ignored=matching"),
    "plain": ("-c", "core.untrackedCache=false", *FOLDERS),
    "cached": ("-c", "core.untrackedCache=true", *FOLDERS),
}
BODY = "def function_{number}(value):\n    return value + {number}\n" * 8
BODIES = 100
"""The files repeat them, so that the repository is made fast; git writes and reads each file all the same."""
IN_FOLDER = 50
POOL = """
import resource, subprocess, sys
from pathlib import Path
from iterdev.host.git import command, scans, worktrees
from iterdev.host.workspaces.pool import Pool

top, root, commits = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
pool = Pool(top, root / "pool" / "bench", root / "temps")

def used():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

def lent(commit):
    begin = used()
    workspace, _ = pool.lend(commit)
    print(used() - begin)
    with scans.occupied(workspace.tree):
        subprocess.run(["true"], cwd=workspace.tree, check=True)
    if not worktrees.is_untouched(workspace.tree, commit):
        raise SystemExit("the workspace is not what it should be")
    pool.give_back(workspace)

with command.serving(top):
    for commit in commits:
        lent(commit)
"""
"""Says what each workspace costs, the first of which is new."""


class Scan(Enum):
    """Where git looked at every file."""

    workspace = "workspace"
    checkout = "checkout"


class Figures(Struct, frozen=True, kw_only=True):
    """Seconds of processor time, and numbers per life."""

    added: float
    new: float
    warm: float
    life: float
    scans: float
    looks: float
    asked: Mapping[str, float]
    """Seconds of one scan, by how git is asked."""

    @property
    def times(self) -> float:
        return self.added / self.warm

    @property
    def cells(self) -> tuple[str, ...]:
        seconds = (f"{taken:.2f} s" for taken in (self.added, self.new, self.warm))
        return (*seconds, f"{self.times:.1f}", f"{self.life:.2f} s", f"{self.scans:.1f}", f"{self.looks:.1f}")


def measure(effort: Effort, root: Path) -> Section:
    bench = Bench(root=root / "large", lives=max(effort.lives // 4, 2), numbers=count())
    found = {files: bench.measured(files) for files in effort.files}
    first = effort.files[0]
    return Section(
        title="Large repositories",
        measured=MEASURED.format(lives=bench.lives + 1),
        repetitions=f"{LENT} of the warm workspace, the median; the others once",
        header=HEADER,
        rows=tuple((f"{files:,}", *figures.cells) for files, figures in found.items()),
        aims=(
            Aim(
                claim=f"a warm workspace of {first:,} files is at least {WARM} times cheaper than `git worktree add`",
                value=found[first].times,
                limit=WARM,
                unit="times",
                at_least=True,
                why=WHY_WARM,
            ),
            Aim(
                claim=f"in a life, git scans {first:,} files at most {SCANS} times",
                value=found[first].scans,
                limit=SCANS,
                unit="scans",
                why=WHY_SCANS,
            ),
        ),
        notes=(CACHE.format(files=first, **found[first].asked),),
    )


class Bench(Struct, frozen=True, kw_only=True):
    root: Path
    lives: int
    numbers: Iterator[int]

    def measured(self, files: int) -> Figures:
        root = self.root / str(files)
        agent = root / "agent.sh"
        settings = life.SETTINGS.format(agent=json.dumps(str(agent)))
        repo = repository(root, _commits(files), **{"iterdev.toml": settings})
        agent.write_text(AGENT)
        commits = repo.git("rev-list", "--reverse", "HEAD").split()[-2:]
        added, asked = self._added(repo, commits[0])
        new, *warm = self._lent(repo, commits)
        first, all_ = (self._run(repo, root, lives) for lives in (1, 1 + self.lives))
        scans, looks = ((all_.count(which) - first.count(which)) / self.lives for which in Scan)
        second, last = (_noted(agent, number) for number in (2, 1 + self.lives))
        return Figures(
            added=added,
            new=new,
            warm=statistics.median(warm),
            life=(last - second) / (self.lives - 1),
            scans=scans,
            looks=looks,
            asked=asked,
        )

    def _added(self, repo: scratch.Scratch, commit: str) -> tuple[float, Mapping[str, float]]:
        """What git takes to add a worktree, and to look at it.

        It stays: ext4 takes many times as long to make files when as many were deleted shortly before.
        """
        tree = self.root / f"tree-{next(self.numbers)}"
        begin = _used()
        repo.git("worktree", "add", "-q", "--detach", tree, commit)
        taken = _used() - begin
        asked = {}
        for name, words in WAYS.items():
            repo.git(*words, cwd=tree)  # Which writes what it found into the index.
            begin = _used()
            for _ in range(LENT):
                repo.git("--no-optional-locks", *words, cwd=tree)
            asked[name] = (_used() - begin) / LENT
        return taken, asked

    def _lent(self, repo: scratch.Scratch, commits: list[str]) -> list[float]:
        """What each workspace costs, the first of which is new."""
        wanted = [commits[number % 2] for number in range(1 + LENT)]
        said = repo.run(sys.executable, "-c", POOL, repo.top, self.root / f"pool-{next(self.numbers)}", *wanted)
        return [float(line) for line in said.split()]

    def _run(self, repo: scratch.Scratch, root: Path, lives: int) -> list[Scan]:
        """The scans in a run."""
        number = next(self.numbers)
        traces, table = root / f"traces-{number}", root / f"tasks-{number}.csv"
        traces.mkdir()
        (repo.home / ".gitconfig").write_text(f"{scratch.WHO}[trace2]\n\teventTarget = {traces}\n")
        life.write_table(table, lives, "pending")
        command = ("iterdev", "run", "--tasks", table, "-y", "-c", "1", "--engine", "beat", "--json")
        said = repo.run("sh", "-c", 'echo $$ > "$0"; exec "$@"', root / "agent.sh.engine", *command)
        (repo.home / ".gitconfig").write_text(scratch.WHO)
        life.check(said, lives)
        trees = (tree for tree, words in _git_processes(traces) if _scans(words))
        return [Scan.checkout if tree == str(repo.top) else Scan.workspace for tree in trees]


def _noted(agent: Path, life_: int) -> float:
    """Seconds of processor time that the engine, and what it waited for, had used when a life began."""
    return sum(map(int, agent.with_name(f"{agent.name}.DEV-{life_:03}").read_text().split())) / os.sysconf("SC_CLK_TCK")


def repository(root: Path, commits: Iterable[bytes], **files: str) -> scratch.Scratch:
    """A repository with further commits, as `git fast-import` reads them."""
    repo = scratch.make(root, **files)
    with subprocess.Popen(
        ["git", "fast-import", "--quiet"], cwd=repo.top, env=repo.environment, stdin=subprocess.PIPE
    ) as process:
        assert process.stdin
        for line in commits:
            process.stdin.write(line)
        process.stdin.close()
    repo.git("reset", "-q", "--hard")
    return repo


def name_of(number: int) -> str:
    """The path of a file."""
    return f"src/part{number // IN_FOLDER:05}/file{number:06}.py"


def _commits(files: int) -> Iterator[bytes]:
    """Two, which differ in one file."""
    bodies = [BODY.format(number=number).encode() for number in range(BODIES)]
    yield from (b"blob\nmark :%d\ndata %d\n%b\n" % (mark, len(body), body) for mark, body in enumerate(bodies, 1))
    head = "commit refs/heads/main\ncommitter Bench <bench@example.invalid> {at} +0000\ndata 5\nfiles\n"
    yield f"{head.format(at=1_700_000_000)}from refs/heads/main^0\n".encode()
    for number in range(files):
        yield f"M 100644 :{number % BODIES + 1} {name_of(number)}\n".encode()
    yield f"{head.format(at=1_700_000_001)}M 100644 inline {name_of(0)}\ndata 2\n#\n\n".encode()


def _git_processes(traces: Path) -> Iterator[tuple[str, list[str]]]:
    """The worktree and the words of each."""
    for path in traces.iterdir():
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        words = next(line["argv"] for line in lines if line["event"] == "start")
        yield next((line["worktree"] for line in lines if line["event"] == "def_repo"), ""), words


def _scans(words: list[str]) -> bool:
    others = "ls-files" in words and "--others" in words
    return others or (not SCANNING.isdisjoint(words) and "--pathspec-from-file=-" not in words)


def _used() -> float:
    """The processor time of all processes that have ended below this one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
