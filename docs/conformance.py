"""Checks all coding agents that the tests have installed, and writes the page with the results."""
# ruff: noqa: INP001 - a script, not a part of a package

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.clis import install_all  # noqa: E402 - after its path is known

from iterdev.conformance.known_deviations import DEVIATIONS  # noqa: E402
from iterdev.conformance.scenarios import SCENARIOS  # noqa: E402

PAGE = HERE / "conformance.md"
CELLS = {"ok": "ok", "explained": "miss", "failed": "**failed**"}

INTRODUCTION = """\
# Conformance of coding agents

<!-- Written by docs/conformance.py from a run of `iterdev agents check`; run `make conformance`. -->

`iterdev agents check` shows whether a coding agent behaves as iterdev requires. The real program runs in a private home
and talks to a [scripted model](scripted-agent.md) on loopback. It needs neither a key nor a network. Run it after an
update of an agent:

```sh
pip install 'iterdev[conformance]'
iterdev agents check            # all that are installed
iterdev agents check claude     # one, in about a minute
iterdev agents check --json     # for scripts
```

It ends with exit code 0 when all is as expected, and with exit code 1 when a scenario failed. A miss is not a failure:
it is a known deviation of the agent, which iterdev handles as described below. Any other deviation is a failure, and a
known one that no longer occurs is reported as news. A process of the agent that is still running after a scenario is a
failure.

## Results
"""
HOMES = """\
With your own home, iterdev cannot change some settings of an agent. This matters for gemini: by default it retries for
minutes when its provider fails; with `"general": {"maxAttempts": 1}` in `~/.gemini/settings.json` it behaves as in the
table.
"""


def page(agents: Sequence[Mapping[str, object]]) -> str:
    return "\n".join([INTRODUCTION, *_table(agents), "", *facts(), HOMES])


def facts() -> Iterator[str]:
    """The part of the page that does not depend on a run."""
    yield "## Scenarios\n"
    yield from _claims()
    yield "\n## Misses\n"
    yield from _misses()


def _table(agents: Sequence[Mapping[str, object]]) -> Iterator[str]:
    yield "| Scenario | " + " | ".join(f"{agent['agent']} {agent['version']}" for agent in agents) + " |"
    yield "|---" * (len(agents) + 1) + "|"
    for row, scenario in enumerate(SCENARIOS):
        cells = (CELLS[agent["results"][row]["standing"]] for agent in agents)
        yield f"| {scenario.name} | " + " | ".join(cells) + " |"


def _claims() -> Iterator[str]:
    yield "| Scenario | Expected |"
    yield "|---|---|"
    yield from (f"| {scenario.name} | {scenario.claim} |" for scenario in SCENARIOS)


def _misses() -> Iterator[str]:
    yield "| Scenario | Agents | What they do | How iterdev handles it |"
    yield "|---|---|---|---|"
    for known in DEVIATIONS:
        yield f"| {known.scenario} | {', '.join(known.agents)} | {known.behaviour} | {known.reaction} |"
    yield ""


def check_agents() -> list[dict[str, object]]:
    with TemporaryDirectory() as folder:
        install_all(Path(folder))
        env = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
        command = [sys.executable, "-m", "iterdev", "agents", "check", "--json"]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=False)
    return [agent for agent in json.loads(done.stdout)["agents"] if agent["installed"]]


if __name__ == "__main__":
    PAGE.write_text(page(check_agents()), encoding="utf-8")
