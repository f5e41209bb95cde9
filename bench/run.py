"""Measures everything, prints it, and writes docs/benchmarks.md.

python bench/run.py                     all of it
python bench/run.py --only NAME         one measurement, such as makespan; it is printed, and the page stays as it is
python bench/run.py --quick PAGE.md     a little of everything, to see that it runs; its figures mean nothing
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attempt
import crowd
import dashboard
import environments
import hosts
import issues
import journal
import large_repository
import life
import long_journal
import machine
import makespan
import page
import planning
import resuming
import startup
import tokens
import web_page
from measure import Effort, Section
from stopwatch import Stopwatch

TOP = Path(__file__).resolve().parent.parent
CACHE = TOP / ".bench"
Measurement = Callable[[Effort, Path], Section]
MEASUREMENTS: tuple[Measurement, ...] = (
    life.measure,
    large_repository.measure,
    attempt.measure,
    tokens.measure,
    crowd.measure,
    hosts.measure,
    makespan.measure,
    journal.measure,
    planning.measure,
    resuming.measure,
    long_journal.measure,
    issues.measure,
    environments.measure,
    startup.measure,
    dashboard.measure,
    web_page.measure,
)
NAMED = {measure.__module__: measure for measure in MEASUREMENTS}
FULL = Effort(
    stopwatch=Stopwatch(patience=60),
    repetitions=5,
    lives=20,
    concurrencies=(1, 2, 4),
    sizes=(1_000, 10_000, 100_000),
    judged=10_000,
    transitions=3_000,
    starts=25,
    scheduled=1_000,
    places=40,
    issues=(50, 500, 5_000),
    files=(50_000, 200_000),
    cache=CACHE,
)
QUICK = Effort(
    stopwatch=Stopwatch(patience=0),
    repetitions=1,
    lives=1,
    concurrencies=(2,),
    sizes=(4, 8),
    judged=8,
    transitions=6,
    starts=1,
    scheduled=6,
    places=3,
    issues=(4, 8),
    files=(60,),
)


def printed(measure: Measurement, effort: Effort, root: Path) -> Section:
    """A section, in a folder of its own; where the time went is told on standard error."""
    begin = time.monotonic()
    effort.stopwatch.begin_section()
    with tempfile.TemporaryDirectory(dir=root, ignore_cleanup_errors=True) as folder:
        section = measure(effort, Path(folder))
    print("\n\n".join(page.blocks_of(section)), end="\n\n", flush=True)
    taken, lost = time.monotonic() - begin, effort.stopwatch.spent
    print(
        f"{measure.__module__}: {taken:.0f} s, of which {lost:.0f} s for disturbed samples", file=sys.stderr, flush=True
    )
    return section


def measured(effort: Effort, root: Path) -> str:
    """The page; every section is also printed as soon as it is there."""
    sections = [printed(measure, effort, root) for measure in MEASUREMENTS]
    return page.page(sections, machine.described(), effort)


def main(words: list[str]) -> None:
    match words:
        case []:
            with _scratch(CACHE) as root:
                (TOP / "docs" / "benchmarks.md").write_text(measured(FULL, root), encoding="utf-8")
        case ["--only", name] if name in NAMED:
            with _scratch(CACHE) as root:
                printed(NAMED[name], FULL, root)
                print(FULL.stopwatch.verdict)
        case ["--quick", name]:
            with _scratch(None) as root:
                Path(name).write_text(measured(QUICK, root), encoding="utf-8")
        case _:
            raise SystemExit(__doc__)


@contextmanager
def _scratch(where: Path | None) -> Iterator[Path]:
    """Not in the folder for temporary files, which may be memory: what has to be durable should cost what it costs."""
    if where:
        where.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=where) as root:
        yield Path(root)


if __name__ == "__main__":
    main(sys.argv[1:])
