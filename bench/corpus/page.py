"""The table of a run, and the page that it is published on."""

import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from trial import Session, Trial

sys.path.append(str(Path(__file__).parents[1]))
import machine

WIDTH = 120
HEADER = (
    *("package", "version", "ecosystem", "test suite", "tests", "by hand", "harmless change", "breaking change"),
    *("environment", "disk", "session", "with the sandbox"),
)
HEAD = """\
# Corpus

<!-- Written by bench/corpus/run.py; run `make corpus` to try again. -->

"""
HOW = """\
Real packages, fetched from their registries at the versions and with the hashes of `bench/corpus/packages.toml`, each \
in a new repository, without any configuration but an agent that makes one change. `iterdev run -y --pipeline patch` \
is called twice: with a harmless change, which has to end with exit code 0, and with one that breaks a line which the \
tests cover, which has to end with exit code 1 and name regressions. Where the ecosystem has a star, the user has made \
the environment as the documentation of the package says, and works in it; elsewhere iterdev makes it. \
The packages are some whose tests can run here at all, with the registries that can be reached; the table shows which \
kinds of projects work, and is no estimate for any package."""
COLUMNS = """\
"By hand" is how many tests passed or failed with the commands of the package's documentation. "Environment" is how \
long iterdev took to make it for the first session (a dash: none is needed), "disk" what is kept of it, and "session" \
how long that session took, with the tests on the base and on the change. Some packages had been downloaded before. \
"With the sandbox" is what is not right if both sessions are run again with `sandbox = true`. \
All sessions took {minutes:.0f} minutes. `make corpus` needs the tools that its target in the Makefile installs."""


def page(trials: Sequence[Trial], with_sandbox: Sequence[Trial]) -> str:
    ecosystems, every = {one.package.ecosystem for one in trials}, (*trials, *with_sandbox)
    right, enclosed = (sum(one.is_right for one in some) for some in (trials, with_sandbox))
    false = sum(one.is_false_pass for one in every)
    result = (
        f"**{right} of {len(trials)} packages of {len(ecosystems)} ecosystems are right: the suite was found, as many "
        f"tests ran as by hand, the harmless change passed, and the regression was named. With the sandbox they are "
        f"{enclosed} of {len(with_sandbox)}. False passes: {false}.**"
    )
    minutes = sum(one.harmless.seconds + one.breaking.seconds for one in every) / 60
    columns, wrong = COLUMNS.format(minutes=minutes), [line for one in every for line in complaints(one)]
    blocks = [HEAD + fill(machine.described()), fill(HOW), fill(result), table(trials, with_sandbox), fill(columns)]
    blocks += ["## Not right", *(fill(f"- {line}") for line in wrong)] if wrong else []
    return "\n\n".join(blocks) + "\n"


def table(trials: Sequence[Trial], with_sandbox: Sequence[Trial]) -> str:
    rows = (
        f"{row(one)} {'right' if other.is_right else '**not right**'} |"
        for one, other in zip(trials, with_sandbox, strict=True)
    )
    return "\n".join([_line(HEADER), _line(["---"] * len(HEADER)), *rows])


def row(one: Trial) -> str:
    package, harmless, breaking = one.package, one.harmless, one.breaking
    many = len(breaking.regressions)
    named = f"{many or 'no'} {'regression' if many <= 1 else 'regressions'} named"
    return _line(
        (
            package.name,
            package.version,
            f"{package.ecosystem} \\*" if package.active else package.ecosystem,
            f"`{_shortened(harmless.suite)}`" if harmless.suite else "none",
            str(harmless.tests),
            str(package.tests),
            "passes" if harmless.exit_code == 0 else f"**exit code {harmless.exit_code}**",
            "**false pass**" if one.is_false_pass else named,
            _environment_time(harmless),
            f"{one.disk / 1e6:.0f} MB" if one.disk else "-",
            f"{harmless.seconds:.0f} s",
        )
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _shortened(suite: str) -> str:
    """The last step of a command that builds first."""
    last = [command.rpartition(" && ")[2] for command in suite.split("; ")]
    return re.sub(r'"\$\{ITERDEV_BUILD:-build\}"', "build", "; ".join(last))


def _environment_time(session: Session) -> str:
    times = [
        match[1] for text in session.environment if (match := re.search(r"\bin ((?:[\d.]+ (?:min|ms|s) ?)+)", text))
    ]
    return " + ".join(time.strip() for time in times) or "-"


def complaints(one: Trial) -> Iterator[str]:
    """What is not right about a package."""
    name = one.package.name
    if one.is_false_pass:
        yield f"{name}: the breaking change passed."
    if not one.is_counted_as_by_hand:
        yield f"{name}: {one.harmless.tests} tests instead of {one.package.tests}."
    if one.harmless.exit_code:
        yield f"{name}: {'; '.join(one.harmless.reasons)}"
    elif not one.is_regression_noticed and not one.is_false_pass:
        yield f"{name}: no regression was named: {'; '.join(one.breaking.reasons)}"


def fill(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
