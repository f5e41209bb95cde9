"""The long form: `make fuzz`. Inputs that a parser fails on are kept in `found/`: fix the parser, and commit them."""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import ceil

from tests.fuzz import found
from tests.fuzz.explore import Fault, faults, generated, isolated
from tests.fuzz.target import Target
from tests.fuzz.targets import TARGETS

ROUND = 2_000
"""Inputs of a target in one process."""
LIMIT = 1_800.0
"""Seconds of a round, however slow the machine is."""


def explored(target: Target, count: int, seed: str) -> list[Fault]:
    return isolated(lambda: faults(target, generated(target, count, seed)), limit=LIMIT)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", help=", ".join(TARGETS))
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of all targets together")
    parser.add_argument("--seed", default=str(int(time.time())), help="makes a run that can be repeated")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    chosen = [TARGETS[name] for name in options.targets or TARGETS]
    each = ceil(options.inputs / len(chosen))
    rounds, count = ceil(each / ROUND), min(ROUND, each)
    sys.stdout.write(f"{rounds * count * len(chosen)} inputs for {len(chosen)} targets, seed {options.seed}\n")
    places: set[tuple[str, str]] = set()
    with ThreadPoolExecutor(options.jobs) as pool:
        for number in range(rounds):
            seed = f"{options.seed}-{number}"
            for target, result in zip(chosen, pool.map(partial(explored, count=count, seed=seed), chosen), strict=True):
                for fault in result:
                    if (target.name, fault.place) not in places:
                        places.add((target.name, fault.place))
                        kept = found.keep(target.name, fault.data) if fault.data else "not kept"
                        sys.stdout.write(f"{target.name}: {fault.place} ({kept})\n{fault.error}\n")
            sys.stdout.write(f"round {number + 1} of {rounds}\n")
            sys.stdout.flush()
    return bool(places)


if __name__ == "__main__":
    sys.exit(main())
