"""What an attempt of a real coding agent sends to its model, and how much of it a provider has in its cache."""

import csv
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

import attempt
import scratch
from iterdev.agents.scripted.script import load
from iterdev.conformance.model.server import serving
from iterdev.core.formatting import counted
from measure import Aim, Effort, Section

MEASURED = """\
Claude Code in iterdev, answered by the scripted model on loopback: on tables of that many DEV rows, each with a \
REVIEW row, and in one session of three sprints, each with a design, a development and a review. For each attempt: the \
bytes of its first request (the agent's tools, its system prompt, our prompt), how many of them are ours, and the \
longest beginning that an earlier attempt of the session had sent too, in the order in which providers cache: tools, \
system prompt, messages. The median of the attempts from the second one on."""
HEADER = ("session", "role", "bytes sent", "ours", "begins like an earlier attempt", "like one of its role")
SPRINTS = "Keep greetings in three steps"
WHY = """\
behind what is common come the task, the design and the change that it is about, which are new each time, and 3 KB \
about its environment that the agent adds behind our prompt"""
GROWN = (
    "of longer sessions, what the team learned and discovered is shown up to a limit, chosen by the words of the task"
)


class Sent(Struct, frozen=True):
    """One first request, in the order of a provider's cache."""

    role: str
    text: str
    ours: int


class Row(Struct, frozen=True, kw_only=True):
    part: str
    role: str
    size: float
    ours: float
    shared: float
    """0 without an earlier attempt; the same holds for those of the role."""
    of_role: float


def measure(effort: Effort, root: Path) -> Section:
    if attempt.PROGRAM is None:
        left_out = (("left out: `make test` installs it",),)
        return Section(title="Tokens", measured=MEASURED, repetitions="none", header=("",), rows=left_out)
    sizes = (1, max(2, effort.lives // 2), effort.lives * 5)
    tables = [_rows(counted(tasks, "task"), sent, sent) for tasks in sizes for sent in (_of_table(root, tasks),)]
    sent = _of_sprints(root)
    starts = [at for at, one in enumerate(sent) if one.role == "architect"]
    ends = (*starts[1:], len(sent))
    sprints = [
        _rows(f"sprint {number}", sent, sent[start:end])
        for number, (start, end) in enumerate(zip(starts, ends, strict=True), start=1)
    ]
    judged = [row for rows in (tables[-1], *sprints) for row in rows]
    shared = "from the second attempt on, at least 70 % of a request begins like an earlier one of the session"
    of_role = "at least 85 % of a request begins like an earlier one of the same role"
    grown = f"the prompt of a task among {sizes[-1]} is at most 1.2 times as long as that of one among {sizes[1]}"
    later = "the prompt of a role in the third sprint is at most 1.2 times as long as in the first"
    return Section(
        title="Tokens",
        measured=MEASURED,
        repetitions="each session once",
        header=HEADER,
        rows=tuple(
            (row.part, row.role, f"{row.size:,.0f}", f"{row.ours:,.0f}", *map(_share, (row.shared, row.of_role)))
            for rows in (*tables, *sprints)
            for row in rows
        ),
        aims=(
            Aim(claim=shared, value=_least(row.shared for row in judged), limit=0.7, at_least=True, why=WHY),
            Aim(claim=of_role, value=_least(row.of_role for row in judged), limit=0.85, at_least=True, why=WHY),
            Aim(claim=grown, value=_growth(tables[1], tables[-1]), limit=1.2, unit="times", why=GROWN),
            Aim(claim=later, value=_growth(sprints[0], sprints[-1]), limit=1.2, unit="times", why=GROWN),
        ),
    )


def _least(values: Iterable[float]) -> float:
    return min(value for value in values if value)


def _growth(before: Sequence[Row], after: Sequence[Row]) -> float:
    """Of the role whose prompt grew most."""
    ours = {row.role: row.ours for row in before}
    return max(row.ours / ours[row.role] for row in after)


def _share(value: float) -> str:
    return f"{value:.0%}" if value else "-"


def _of_table(root: Path, tasks: int) -> list[Sent]:
    folder = root / f"tokens-{tasks}"
    folder.mkdir(parents=True)
    table = folder / "tasks.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "description", "deps"))
        for number in range(1, tasks + 1):
            writer.writerow((f"DEV-{number:03}", f"Write the file number {number}", ""))
            writer.writerow((f"REVIEW-{number:03}", f"Look at the file number {number}", f"DEV-{number:03}"))
    return _sent(folder, "--tasks", table, "-c", "2")


def _of_sprints(root: Path) -> list[Sent]:
    """Each sprint has a test run too, which asks no agent because the tests pass."""
    return _sent(root / "tokens-sprints", SPRINTS, "--pipeline", "multi-sprint")


def _sent(folder: Path, *request: str | Path) -> list[Sent]:
    repo = scratch.make(folder, **{"iterdev.toml": '[run]\nagent = "claude"\n[project]\ntest = "true"\n'})
    with serving(load(attempt.HERE / "tokens.toml", "model")) as model:
        run = ("iterdev", "run", *request, "-y", "--engine", "beat", "--json")
        said = repo.run(*run, environment=attempt.environment(repo, model.url))
        counts = json.loads(said)["counts"]
        if counts["completed"] != sum(counts.values()):
            raise SystemExit(f"iterdev did not complete every task: {said}")
        return [_read(one.body) for one in model.requests if one.task and one.turn == 0 and not one.is_side_call]


def _read(body: str) -> Sent:
    request = json.loads(body)
    parts = [json.dumps(request.get(name), ensure_ascii=False) for name in ("tools", "system", "messages")]
    blocks = [block for message in request["messages"] for block in message["content"] if isinstance(block, dict)]
    prompt = max((str(block.get("text", "")) for block in blocks), key=lambda text: "# " in text and len(text))
    found = re.search(r"You are the ([\w-]+) of a", prompt)
    return Sent(found[1] if found else "", "".join(parts), len(prompt))


def _rows(part: str, sent: Sequence[Sent], of_part: Sequence[Sent]) -> list[Row]:
    return [_row(part, role, sent, [one for one in of_part if one.role == role]) for role in _roles(of_part)]


def _roles(sent: Sequence[Sent]) -> list[str]:
    return list(dict.fromkeys(one.role for one in sent))


def _row(part: str, role: str, sent: Sequence[Sent], mine: Sequence[Sent]) -> Row:
    shared: list[float] = []
    of_role: list[float] = []
    for one in mine:
        if before := sent[: sent.index(one)]:
            shared.append(_common(one, before))
            of_role += [_common(one, same)] if (same := [other for other in before if other.role == role]) else []
    size, ours = _middle([len(one.text) for one in mine]), _middle([one.ours for one in mine])
    return Row(part=part, role=role, size=size, ours=ours, shared=_middle(shared), of_role=_middle(of_role))


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
