"""Memory of an engine with many agents at work."""

import csv
import json
import subprocess
import time
from pathlib import Path

import scratch
from measure import Aim, Effort, Section

AGENT = r"""
: > "{root}/started/$ITERDEV_TASK"
while [ ! -e "{root}/go" ]; do sleep 0.2; done
echo "$ITERDEV_TASK" > "$ITERDEV_TASK.txt"
printf '{{"id":"%s","status":"completed","findings":"done"}}' "$ITERDEV_TASK" > "$ITERDEV_RESULT"
"""
SETTINGS = '[run]\nagent = "bench"\n[project]\ntest = "true"\n[agents.bench]\ncommand = ["sh", {agent}]\n'
MEASURED = """\
One `iterdev run --tasks FILE.csv -y -c {crowd} --engine beat` on a table of {crowd} DEV rows whose agents, shell \
scripts, wait until all of them are at work; then the kernel is asked for the resident size of the engine. The \
supervisor and the monitors of the agents share nearly all of their memory; theirs is the proportional size."""
WHY = "Python with the packages that a run loads, and a thread for each agent that is being set up"
PATIENCE = 300.0


def measure(effort: Effort, root: Path) -> Section:
    crowd = 100 if effort.cache else 2
    engine, others = _at_work(root / "crowd", crowd)
    return Section(
        title="Many agents at work",
        measured=MEASURED.format(crowd=crowd),
        repetitions="one run",
        header=("", "memory"),
        rows=((f"the engine with {crowd} agents", f"{engine:.1f} MB"), ("supervisor and monitors", f"{others:.1f} MB")),
        aims=(
            Aim(
                claim=f"the engine with {crowd} agents needs at most 80 MB", value=engine, limit=80, unit="MB", why=WHY
            ),
        ),
    )


def _at_work(root: Path, crowd: int) -> tuple[float, float]:
    (root / "started").mkdir(parents=True)
    agent = root / "agent.sh"
    agent.write_text(AGENT.format(root=root))
    repo = scratch.make(root, **{"iterdev.toml": SETTINGS.format(agent=json.dumps(str(agent)))})
    table = root / "tasks.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows(
            [("id", "description"), *((f"DEV-{number:03}", "Write one file") for number in range(1, crowd + 1))]
        )
    words = ("iterdev", "run", "--tasks", str(table), "-y", "-c", str(crowd), "--engine", "beat", "--json")
    engine = subprocess.Popen(words, cwd=repo.top, env=repo.environment, stdout=subprocess.PIPE, text=True)
    _wait_for(root / "started", crowd, engine)
    sizes = resident(engine.pid), sum(map(_proportional, _family(engine.pid)))
    (root / "go").touch()
    said, _ = engine.communicate(timeout=PATIENCE)
    if json.loads(said)["counts"]["completed"] != crowd:
        raise SystemExit(f"iterdev did not complete every task: {said[:500]}")
    return sizes


def _wait_for(folder: Path, crowd: int, engine: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + PATIENCE
    while len(list(folder.iterdir())) < crowd:
        if time.monotonic() > end or engine.poll() is not None:
            engine.kill()
            raise SystemExit("the agents did not all start")
        time.sleep(0.1)


def resident(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) / 1024


def _proportional(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024


def _family(pid: int) -> list[int]:
    """The supervisor and its monitors: Python programs that come from the engine."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            name, rest = stat.rpartition(")")[0], stat.rpartition(")")[2].split()
            parents[int(entry.name)] = (int(rest[1]), "python" in name or "iterdev" in name)
    found = [pid]
    for one in found:
        found += [child for child, (parent, _) in parents.items() if parent == one]
    return [one for one in found[1:] if parents[one][1]]
