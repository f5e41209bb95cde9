"""Every command accepts --json, and then prints one document and nothing else."""

import json
from collections.abc import Iterator

import click
import pytest
from tests.conftest import Repo

from iterdev.surfaces.cli.app import app


def every_command(group: click.Group, above: click.Context, *path: str) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(above):
        command = group.get_command(above, name)
        assert command
        if isinstance(command, click.Group):
            yield from every_command(command, click.Context(command, parent=above), *path, name)
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield " ".join((*path, name)), command


COMMANDS = dict(every_command(app, click.Context(app)))


PROTOCOLS = {"mcp"}
"""Commands whose output is a protocol."""


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - PROTOCOLS))
def test_every_command_accepts_json(name: str) -> None:
    assert "--json" in {spelling for parameter in COMMANDS[name].params for spelling in parameter.opts}


WITHOUT_A_SESSION = {
    *(
        "agents",
        "agents check",
        "completion",
        "demo",
        "doctor",
        "help",
        "import",
        "notify test",
        "resolve",
        "run",
        "sessions",
        "web",
    ),
    *("skill install", "skill remove", "skill status", "wisdom list", "wisdom reject"),
    *("hosts", "key new", "worker", "worker drain", "worker install"),
    *PROTOCOLS,
}


def test_every_command_that_takes_a_session_accepts_its_id_as_an_option() -> None:
    accepting = {
        name
        for name, command in COMMANDS.items()
        if "--session-id" in {spelling for parameter in command.params for spelling in parameter.opts}
    }

    issues = {name for name in COMMANDS if name.startswith("issue ")}
    assert accepting == COMMANDS.keys() - WITHOUT_A_SESSION - issues


FINISHED = {
    "accept": "branch",
    "agents": "agents",
    "archive": "phase",
    "clean": "removed",
    "checkpoint list": "task_checkpoints",
    "completion bash": "script",
    "debt list": "tech_debt_items",
    "debt report": "total",
    "diff": "files",
    "diff DEV-001": "diff",
    "doctor": "findings",
    "feedback list": "user_feedback_items",
    "follow": "events",
    "help status": "help",
    "lock list": "resource_locks",
    "logs": "lines",
    "logs DEV-001": "lines",
    "replay": "entries",
    "report": "report",
    "rollback DEV-001": "rolled_back",
    "sessions": "sessions",
    "status": "tasks",
    "team list": "messages",
    "update": "updated",
    "why VERIFY-001": "why",
    "wisdom list": "wisdom",
}


@pytest.mark.parametrize("command", FINISHED)
def test_a_document_has_what_the_text_says(finished: Repo, command: str) -> None:
    done = finished.iterdev(*command.split(), "--json")

    assert (done.returncode, done.stderr) == (0, "")
    assert FINISHED[command] in json.loads(done.stdout)


@pytest.fixture
def finished(repo: Repo) -> Repo:
    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it")
    return repo


def test_what_changes_a_session_prints_one_document_each(finished: Repo) -> None:
    def document(*words: str) -> dict[str, object]:
        done = finished.iterdev(*words, "--json")
        assert (done.returncode, done.stderr) == (0, "")
        loaded: dict[str, object] = json.loads(done.stdout)
        return loaded

    given = document("feedback", "add", "too long")
    debt = document("debt", "add", "copied")
    linked = document("feedback", "link", str(given["feedback_id"]), "DEV-001")
    closed = document("feedback", "close", str(given["feedback_id"]))
    resolved = document("debt", "resolve", str(debt["debt_id"]))
    archived = document("export", str(finished.home / "out"))
    reopened = document("reopen")

    assert (linked["status"], closed["status"], resolved["status"]) == ("reviewed", "closed", "resolved")
    assert (archived["phase"], archived["exported"]) == ("archived", str(finished.home / "out"))
    assert reopened["phase"] == "paused"


def test_an_answer_prints_the_session(repo: Repo) -> None:
    repo.iterdev("run", "--pipeline", "patch", "Fix it")

    done = repo.iterdev("answer", "plan", "approve", "--json")

    assert json.loads(done.stdout)["gates"] == []


@pytest.mark.parametrize(
    "command", ["why DEV-009", "accept nothing", "answer plan maybe", "logs -f", "debt resolve TD-1"]
)
def test_an_error_leaves_standard_output_empty(finished: Repo, command: str) -> None:
    done = finished.iterdev(*command.split(), "--json")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("iterdev: ")
    assert "\nhint: " in done.stderr


def test_a_number_that_json_does_not_have_is_printed_as_null(repo: Repo) -> None:
    repo.iterdev("run", "-y", "Fix it")
    with (repo.folder() / "discoveries.ndjson").open("a") as board:
        board.write('{"type": "convention", "data": {"name": "x", "size": Infinity}}\n')

    read = repo.iterdev("team", "board-read", "--type", "convention", "--json")

    (found,) = json.loads(read.stdout, parse_constant=pytest.fail)["discoveries"]
    assert found["data"] == {"name": "x", "size": None}


def test_a_number_that_json_does_not_have_is_not_accepted(repo: Repo) -> None:
    saved = repo.iterdev("checkpoint", "save", "--task", "DEV-001", "--data", '{"size": NaN}')

    assert saved.returncode == 2
    assert "NaN is not a number of JSON" in saved.stderr
