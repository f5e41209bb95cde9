"""Measures everything, prints it, and writes docs/benchmarks.md.

python bench/run.py                     all of it
python bench/run.py --quick PAGE.md     a little of everything, to see that it runs; its figures mean nothing
"""

import sys
import tempfile
from pathlib import Path

import attempt
import crowd
import journal
import life
import machine
import page
import planning
import resuming
import startup
from measure import Effort, Section
from stopwatch import Stopwatch

TOP = Path(__file__).resolve().parent.parent
CACHE = TOP / ".bench"
MEASUREMENTS = (
    life.measure,
    attempt.measure,
    crowd.measure,
    journal.measure,
    planning.measure,
    resuming.measure,
    startup.measure,
)
FULL = Effort(
    stopwatch=Stopwatch(patience=1800),
    repetitions=5,
    lives=20,
    concurrencies=(1, 2, 4),
    sizes=(1_000, 10_000, 100_000),
    judged=10_000,
    transitions=3_000,
    starts=25,
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
)


def measured(effort: Effort, root: Path) -> str:
    """The page; every section is also printed as soon as it is there."""
    sections: list[Section] = []
    for measure in MEASUREMENTS:
        sections.append(measure(effort, root))
        print("\n\n".join(page.blocks_of(sections[-1])), end="\n\n", flush=True)
    return page.page(sections, machine.described(), effort)


def main(words: list[str]) -> None:
    where: Path | None = None
    match words:
        case []:
            CACHE.mkdir(exist_ok=True)
            effort, where, path = FULL, CACHE, TOP / "docs" / "benchmarks.md"
        case ["--quick", name]:
            effort, path = QUICK, Path(name)
        case _:
            raise SystemExit(__doc__)
    # Not in the folder for temporary files, which may be memory: what has to be durable should cost what it costs.
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=where) as root:
        path.write_text(measured(effort, Path(root)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
