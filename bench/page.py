"""The page: which aims were met, and every figure with what exactly was measured."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from measure import Aim, Effort, Section

WIDTH = 120
HEAD = """\
# Benchmarks

<!-- Written by bench/run.py; run `make bench` to measure again. -->

"""
HOW = """\
Every figure is the median of {repetitions} repetitions (of {starts} for the start-up; the makespan is that of one \
run) in which the contestants took turns; every ratio is made of two such medians of the same run. A sample that other \
programs disturbed was taken again for as long as there was patience: {verdict}. `make bench` measures again and \
writes this page. It takes about a quarter of an hour on a machine with nothing else to do, and up to half an hour \
more on another one."""


def page(sections: Sequence[Section], machine: str, effort: Effort) -> str:
    aims = [aim for section in sections for aim in section.aims]
    how = HOW.format(repetitions=effort.repetitions, starts=effort.starts, verdict=effort.stopwatch.verdict)
    blocks = [HEAD + fill(machine), fill(how), "## Aims", table(("aim", "measured", ""), map(_verdict, aims))]
    blocks += _reasons(aims)
    blocks += [block for section in sections for block in blocks_of(section)]
    return "\n\n".join(blocks) + "\n"


def blocks_of(section: Section) -> list[str]:
    rows = table(section.header, section.rows)
    return [f"## {section.title}", fill(section.measured), rows, *map(fill, section.notes)]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def fill(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _verdict(aim: Aim) -> tuple[str, str, str]:
    return aim.claim, f"{aim.value:.3g} {aim.unit}".strip(), aim.verdict if aim.is_met else f"**{aim.verdict}**"


def _reasons(aims: Iterable[Aim]) -> Iterator[str]:
    """Why aims were missed, each reason once."""
    reasons = dict.fromkeys(aim.why for aim in aims if not aim.is_met)
    if reasons:
        yield "Why aims were missed:"
        yield "\n".join(textwrap.fill(f"- {reason}", WIDTH, subsequent_indent="  ") for reason in reasons)
