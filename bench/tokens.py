"""What an attempt of a real coding agent sends to its model, and how much of it a provider has in its cache."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

import attempt
import scratch
from iterdev.agents.scripted.script import load
from iterdev.conformance.model.server import serving
from measure import Aim, Effort, Section

MEASURED = """\
Claude Code in iterdev, answered by the scripted model on loopback, on tables of that many DEV rows, each with a \
REVIEW row. For each attempt: the bytes of its first request (the agent's tools, its system prompt, our prompt), how \
many of them are ours, and the longest beginning that an earlier attempt of the session had sent too, in the order in \
which providers cache: tools, system prompt, messages. The median of the attempts from the second one on."""
HEADER = ("tasks", "role", "bytes sent", "ours", "begins like an earlier attempt", "like one of its role")
WHY = "the agent adds its environment after our prompt, and the change under review is new each time"


class Sent(Struct, frozen=True):
    """One first request, in the order of a provider's cache."""

    role: str
    text: str
    ours: int


class Row(Struct, frozen=True, kw_only=True):
    tasks: int
    role: str
    size: float
    ours: float
    shared: float
    of_role: float


def measure(effort: Effort, root: Path) -> Section:
    if attempt.PROGRAM is None:
        return Section(title="Tokens", measured=MEASURED, header=("",), rows=(("left out: `make test` installs it",),))
    sizes = (1, max(2, effort.lives // 2), effort.lives * 5)
    rows = [row for tasks in sizes for row in _rows(tasks, _sent(root / f"tokens-{tasks}", tasks))]
    largest = [row for row in rows if row.tasks == sizes[-1]]
    middle = {row.role: row for row in rows if row.tasks == sizes[1]}
    shared = "from the second attempt on, at least 70 % of a request begins like an earlier one of the session"
    of_role = "at least 85 % of a request begins like an earlier one of the same role"
    grown = f"the prompt of a task among {sizes[-1]} is at most 1.2 times as long as that of one among {sizes[1]}"
    growth = max(row.ours / middle[row.role].ours for row in largest)
    return Section(
        title="Tokens",
        measured=MEASURED,
        header=HEADER,
        rows=tuple(
            (str(row.tasks), row.role, f"{row.size:,.0f}", f"{row.ours:,.0f}", *map(_share, (row.shared, row.of_role)))
            for row in rows
        ),
        aims=(
            Aim(claim=shared, value=min(row.shared for row in largest), limit=0.7, at_least=True, why=WHY),
            Aim(claim=of_role, value=min(row.of_role for row in largest), limit=0.85, at_least=True, why=WHY),
            Aim(claim=grown, value=growth, limit=1.2, unit="times", why=WHY),
        ),
    )


def _share(value: float) -> str:
    return f"{value:.0%}" if value else "-"


def _sent(folder: Path, tasks: int) -> list[Sent]:
    repo = scratch.make(folder, **{"iterdev.toml": '[run]\nagent = "claude"\n[project]\ntest = "true"\n'})
    table = folder / "tasks.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "description", "deps"))
        for number in range(1, tasks + 1):
            writer.writerow((f"DEV-{number:03}", f"Write the file number {number}", ""))
            writer.writerow((f"REVIEW-{number:03}", f"Look at the file number {number}", f"DEV-{number:03}"))
    run = ("iterdev", "run", "--tasks", table, "-y", "-c", "2", "--engine", "beat", "--json")
    with serving(load(attempt.HERE / "tokens.toml", "model")) as model:
        said = repo.run(*run, environment=attempt.environment(repo, model.url))
        if json.loads(said)["counts"]["completed"] != 2 * tasks:
            raise SystemExit(f"iterdev did not complete every task: {said}")
        return [_read(one.body) for one in model.requests if one.task and one.turn == 0 and not one.is_side_call]


def _read(body: str) -> Sent:
    request = json.loads(body)
    parts = [json.dumps(request.get(name), ensure_ascii=False) for name in ("tools", "system", "messages")]
    blocks = [block for message in request["messages"] for block in message["content"] if isinstance(block, dict)]
    prompt = max((str(block.get("text", "")) for block in blocks), key=lambda text: "# " in text and len(text))
    found = re.search(r"You are the ([\w-]+) of a", prompt)
    return Sent(found[1] if found else "", "".join(parts), len(prompt))


def _rows(tasks: int, sent: Sequence[Sent]) -> list[Row]:
    return [_row(tasks, role, sent) for role in dict.fromkeys(one.role for one in sent)]


def _row(tasks: int, role: str, sent: Sequence[Sent]) -> Row:
    shared: list[float] = []
    of_role: list[float] = []
    for at, one in enumerate(sent):
        if one.role == role and at:
            shared.append(_common(one, sent[:at]))
            of_role += [_common(one, before)] if (before := [e for e in sent[:at] if e.role == role]) else []
    mine = [one for one in sent if one.role == role]
    size, ours = _middle([len(one.text) for one in mine]), _middle([one.ours for one in mine])
    return Row(tasks=tasks, role=role, size=size, ours=ours, shared=_middle(shared), of_role=_middle(of_role))


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


def _common(one: Sent, others: Sequence[Sent]) -> float:
    """The share of a request that is the beginning of one of the others too."""
    longest = 0
    for other in others:
        low, high = longest, min(len(one.text), len(other.text))
        while low < high:
            half = (low + high + 1) // 2
            low, high = (half, high) if one.text[:half] == other.text[:half] else (low, half - 1)
        longest = low
    return longest / len(one.text)
