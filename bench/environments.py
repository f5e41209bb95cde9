"""What the environment of a project costs: made for the first time, in a second session, and once more where it is."""

import os
import shutil
import tarfile
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path

import anyio
from msgspec import Struct

import scratch
from iterdev.core.errors import HostError
from iterdev.host.environments import environment
from iterdev.host.git import worktrees
from iterdev.host.processes.spawn import ProgramResult
from iterdev.host.workspaces.pool import Workspace
from measure import Aim, Effort, Section, ms, timed

MEASURED = """\
The environment of real packages, at the versions named, in a new home without caches: made for the first time, with \
what has to be downloaded (once); put into a new workspace by a later session of the unchanged repository; and asked \
for again in a workspace that has it, as before every attempt, and between the test runs on the base and on the \
change, which share it. Disk: what is kept for all workspaces, and what one more workspace adds to it. Of this section \
alone: `python bench/run.py --only environments`."""
WHY = "every file that may be edited in place is copied, and each is looked at before, so that no damaged one is used"
PYTHON, NODE = "pyjwt==2.10.1", "commander@12.1.0"
LOCAL = {"package.json": '{"name": "outer", "dependencies": {"inner": "file:./inner"}}'}


class Sample(Struct, frozen=True, kw_only=True):
    name: str
    repository: scratch.Scratch
    variables: Mapping[str, str]


class Figures(Struct, frozen=True, kw_only=True):
    first: float
    second: float
    again: float
    kept: int
    added: int
    """Bytes."""


def measure(effort: Effort, root: Path) -> Section:
    samples = _packages(root / "environments") if effort.cache else [_local(root / "environments")]
    figures = {sample.name: _measured(effort, sample) for sample in samples}
    slowest = max(one.second for one in figures.values())
    return Section(
        title="Environments",
        measured=MEASURED,
        repetitions=f"the first time once, the others {effort.repetitions}, the median",
        header=("", "first", "a second session", "asked for again", "kept", "one more workspace"),
        rows=tuple(
            (name, ms(one.first), ms(one.second), ms(one.again), _megabytes(one.kept), _megabytes(one.added))
            for name, one in figures.items()
        ),
        aims=(
            Aim(
                claim="the environment of a second session of an unchanged repository takes at most 2 s",
                value=slowest,
                limit=2,
                unit="s",
                why=WHY,
            ),
        ),
    )


def _measured(effort: Effort, sample: Sample) -> Figures:
    numbers = count(1)
    home = sample.repository.home
    cache = home / "environments"

    def workspace() -> Workspace:
        made = Workspace(home / f"slot-{next(numbers)}", home / "tmp")
        made.slot.mkdir()
        made.temp.mkdir(exist_ok=True)
        worktrees.add(sample.repository.top, made.tree, "HEAD")
        return made

    def prepare(used: Workspace) -> None:
        anyio.run(partial(_prepare, sample, cache, used))

    def in_new_workspace() -> float:
        return timed(partial(prepare, workspace()))

    first = in_new_workspace()
    second = effort.stopwatch.medians(effort.repetitions, {"": in_new_workspace})
    last = workspace()
    prepare(last)
    again = effort.stopwatch.medians(effort.repetitions, {"": lambda: timed(partial(prepare, last))})
    return Figures(first=first, second=second[""], again=again[""], kept=_size(cache), added=_own_size(last))


async def _prepare(sample: Sample, cache: Path, used: Workspace) -> None:
    made = await environment.prepare(
        used, cache=cache, checkout=sample.repository.top, trusted=True, run=_run, variables=sample.variables
    )
    if made.problems:
        raise SystemExit(f"{sample.name}: {'; '.join(made.problems)}")


async def _run(argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float) -> ProgramResult:
    with anyio.fail_after(limit):
        try:
            done = await anyio.run_process([*argv], cwd=cwd, env=env, check=False)
        except OSError as error:
            raise HostError(str(error)) from error
    return ProgramResult(code=done.returncode, timed_out=False, stdout=done.stdout, stderr=done.stderr)


def _packages(root: Path) -> list[Sample]:
    """Python once with uv and once with pip, and Node."""
    python, node = (scratch.make(root / name) for name in ("python", "node"))
    pip = scratch.make(root / "pip")
    for project in (python, pip):
        fetch = ("pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(project.home), PYTHON)
        project.run("python", "-m", *fetch)
        _unpack(project)
    node.run("npm", "pack", "--silent", "--pack-destination", str(node.home), NODE)
    _unpack(node)
    return [
        Sample(name=f"Python, {PYTHON}, uv", repository=python, variables=python.environment),
        Sample(name=f"Python, {PYTHON}, pip", repository=pip, variables=_without_uv(pip)),
        Sample(name=f"Node, {NODE}, npm", repository=node, variables=node.environment),
    ]


def _unpack(project: scratch.Scratch) -> None:
    (archive,) = (path for path in project.home.iterdir() if path.name.endswith((".tar.gz", ".tgz")))
    with tarfile.open(archive) as content:
        content.extractall(project.home / "unpacked", filter="data")
    (folder,) = (project.home / "unpacked").iterdir()
    shutil.copytree(folder, project.top, dirs_exist_ok=True)
    (project.top / ".gitignore").write_text("node_modules\n")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "a package")


def _without_uv(project: scratch.Scratch) -> dict[str, str]:
    """The variables with the programs of the system alone, on which uv rarely is."""
    tools = project.home / "tools"
    tools.mkdir()
    (tools / "python3").symlink_to(os.path.realpath(shutil.which("python3") or "python3"))
    return {**project.environment, "PATH": f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin"}


def _local(root: Path) -> Sample:
    """A project that needs no network."""
    project = scratch.make(root, **LOCAL)
    (project.top / "inner").mkdir()
    (project.top / "inner" / "package.json").write_text('{"name": "inner", "version": "1.0.0"}')
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "a package inside")
    return Sample(name="Node", repository=project, variables=project.environment)


def _size(folder: Path) -> int:
    files = (path.lstat() for path in folder.rglob("*") if not path.is_dir() or path.is_symlink())
    return sum(status.st_blocks * 512 for status in files)


def _own_size(used: Workspace) -> int:
    """Of what is in the workspace and shared with nothing, without the files that git put there."""
    places = (used.private, *used.tree.glob("node_modules"))
    found = (path.lstat() for place in places for path in place.rglob("*") if not path.is_dir() or path.is_symlink())
    return sum(status.st_blocks * 512 for status in found if status.st_nlink == 1)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
