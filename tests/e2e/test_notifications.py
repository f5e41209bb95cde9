"""Notifications of real runs."""

import json
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.webhook_server import answering, server

from iterdev.host.notifications.webhook import signature


@pytest.fixture
def told(repo: Repo) -> Path:
    """The file that a program of the repository, which is committed, writes its messages to."""
    told = repo.home / "told"
    repo.write("notify.sh", f"cat >> {told}\n")
    configure(repo, 'command = ["sh", "notify.sh"]')
    return told


def configure(repo: Repo, lines: str) -> None:
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", f"{settings}\n[notify]\n{lines}\n")
    repo.commit("notifications")


def kinds(told: Path) -> list[tuple[str, str]]:
    documents = [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []
    return [(document["kind"], document["state"]) for document in documents]


def test_a_question_is_told_then_that_it_is_answered_and_then_the_end(repo: Repo, told: Path) -> None:
    asked = repo.iterdev("run", "--pipeline", "patch", "Fix the greeting")
    session = repo.folder().name
    first = kinds(told)

    repo.iterdev("resume", session, "-y")

    assert (asked.returncode, first) == (5, [("question", "open")])
    assert kinds(told) == [("question", "open"), ("question", "over"), ("ready", "open")]


def test_an_agent_cannot_have_the_running_session_call_another_program(repo: Repo, told: Path) -> None:
    changed = repo.home / "changed"
    script = f"echo changed >> {changed}\n"
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8").replace("notify.sh", "other.sh")
    repo.behave(developer={"write": {"notify.sh": script, "other.sh": script, "iterdev.toml": settings}})

    done = repo.iterdev("run", "-y", "--pipeline", "patch", "Fix the greeting")

    assert done.returncode == 0, done.stderr
    assert not changed.exists()
    assert kinds(told) == [("ready", "open")]


def test_a_program_of_the_checkout_that_was_changed_meanwhile_is_not_called(repo: Repo, told: Path) -> None:
    changed = repo.home / "changed"
    checkout = repo.path / "notify.sh"
    repo.behave(developer={"run": f"echo 'echo changed >> {changed}' > {checkout}"})

    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix the greeting")

    assert not changed.exists()
    assert kinds(told) == [("ready", "open")]


def test_a_server_that_fails_once_gets_the_same_message_again(repo: Repo) -> None:
    with server(answering(503, 200)) as (address, received):
        configure(repo, f'webhook = "{address}"')

        done = repo.iterdev("run", "-y", "--pipeline", "patch", "Fix the greeting", ITERDEV_WEBHOOK_SECRET="s3cret")

    assert (done.returncode, "warning" in done.stdout) == (0, False), done
    (first, _), (second, body) = received
    assert first["X-Iterdev-Delivery"] == second["X-Iterdev-Delivery"]
    expected = signature("s3cret", second["X-Iterdev-Timestamp"], body)
    assert (second["X-Iterdev-Signature"], json.loads(body)["kind"]) == (f"sha256={expected}", "ready")


def test_a_server_that_always_fails_is_a_warning_and_the_work_is_done_all_the_same(repo: Repo) -> None:
    with server(answering(503)) as (address, _):
        configure(repo, f'webhook = "{address}"')

        done = repo.iterdev("run", "-y", "--pipeline", "patch", "Fix the greeting")

    assert done.returncode == 0, done
    assert "warning: a notification could not be sent by webhook before the run ended" in done.stdout
    assert "Accept it with: iterdev accept" in done.stdout


def test_a_test_message_goes_to_every_channel(repo: Repo) -> None:
    configure(repo, 'command = ["true"]\nterminal = true\nwebhook = "http://127.0.0.1:1/"')

    done = repo.iterdev("notify", "test")
    document = json.loads(repo.iterdev("notify", "test", "--json").stdout)

    lines = done.stdout.splitlines()
    assert (done.returncode, lines[:2]) == (1, ["terminal: there is no terminal", "command: sent"])
    assert lines[2].startswith('webhook: No answer from "127.0.0.1"')
    assert [one["channel"] for one in document["channels"]] == ["terminal", "command", "webhook"]


def test_without_channels_there_is_a_hint(repo: Repo) -> None:
    refused = repo.iterdev("notify", "test")

    assert refused.returncode == 2
    assert "No notifications are configured in iterdev.toml" in refused.stderr


@pytest.mark.parametrize(
    "line",
    [
        'slack = "https://hooks.slack.com/services/T0/B0/secret"',
        'webhook = "http://example.org/"',
        'webhook = "https://user:secret@example.org/"',
        'on = ["everything"]',
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(repo: Repo, line: str) -> None:
    configure(repo, line)

    refused = repo.iterdev("notify", "test")

    assert refused.returncode == 2
    assert "iterdev.toml: [notify]" in refused.stderr
    assert "secret" not in refused.stderr
