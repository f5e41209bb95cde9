"""What grows with the number of tasks: measured for every size and shape, and judged for its amount and its growth."""

from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct

import sessions
from measure import Aim, Effort, ms

LINEAR = 2.0
"""How much more a task may cost in the greatest table than in the smallest, before we stop calling it linear."""


class Growth(Struct, frozen=True, kw_only=True):
    """Seconds by size and shape."""

    name: str
    seconds: Mapping[tuple[int, str], float]

    def cells(self, size: int, shape: str) -> tuple[str, str]:
        taken = self.seconds[size, shape]
        return ms(taken), f"{taken / size * 1e6:.1f} µs"

    def aims(self, judged: int, limit: float, why: str) -> tuple[Aim, ...]:
        """The slower shape counts."""
        sizes = sorted({size for size, _ in self.seconds})
        slowest = max(self.seconds[judged, shape] for shape in sessions.SHAPES)
        steepest = max(self._per_task(sizes[-1], shape) / self._per_task(sizes[0], shape) for shape in sessions.SHAPES)
        return (
            Aim(
                claim=f"{self.name} {judged:,} tasks: at most {limit:g} s",
                value=slowest,
                limit=limit,
                unit="s",
                why=why,
            ),
            Aim(
                claim=f"{self.name} grows linearly: a task among {sizes[-1]:,} costs at most {LINEAR:g} times what one "
                f"among {sizes[0]:,} costs",
                value=steepest,
                limit=LINEAR,
                unit="times",
                why=why,
            ),
        )

    def _per_task(self, size: int, shape: str) -> float:
        return self.seconds[size, shape] / size


def grown(effort: Effort, name: str, work: Callable[[int, str], float]) -> Growth:
    contestants = {f"{size} {shape}": partial(work, size, shape) for size in effort.sizes for shape in sessions.SHAPES}
    found = effort.stopwatch.medians(effort.repetitions, contestants)
    keys = [(size, shape) for size in effort.sizes for shape in sessions.SHAPES]
    return Growth(name=name, seconds=dict(zip(keys, found.values(), strict=True)))
