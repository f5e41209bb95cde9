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
All figures are of one run of `make bench`, which measures again and writes this page. Each section says how often it \
was measured; where that is more than once, the contestants took turns. A sample that other programs disturbed was \
taken again, until its section had lost {patience:g} s to them: {verdict}. Large repositories, tokens, memory, \
long journals and the dashboards are measured without such samples. The run takes about half an hour on a machine with \
nothing else to do, and says on standard error where the time goes."""


def page(sections: Sequence[Section], machine: str, effort: Effort) -> str:
    aims = [aim for section in sections for aim in section.aims]
    how = HOW.format(patience=effort.stopwatch.patience, verdict=effort.stopwatch.verdict)
    blocks = [HEAD + fill(machine), fill(how), "## Aims", table(("aim", "measured", ""), map(_verdict, aims))]
    blocks += _reasons(aims)
    blocks += [block for section in sections for block in blocks_of(section)]
    return "\n\n".join(blocks) + "\n"


def blocks_of(section: Section) -> list[str]:
    rows = table(section.header, section.rows)
    measured = f"{section.measured} Repetitions: {section.repetitions}."
    return [f"## {section.title}", fill(measured), rows, *map(fill, section.notes)]


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
