"""The log of a session: lines of its engine and its agents, read at once or followed."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from tests.app.conftest import Sessions

from iterdev.app.logs import ENGINE, LogLine, LogTail, follow_logs, log_lines
from iterdev.app.resume import RunObserver, run_session
from iterdev.app.start import Request, start
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId
from iterdev.engine.effects import LOG
from iterdev.host.processes.identity import identity
from iterdev.teams.development.roles import Pipeline

NOON = 1_772_000_000.0
SECRET = "correct-horse-battery"


class Logs:
    """A session with log files that a test writes."""

    def __init__(self, sessions: Sessions) -> None:
        self.repository = sessions.repository
        self.session = sessions.start()
        self.folder = self.repository.folder(sessions.state(self.session))
        (self.folder / "logs").mkdir()

    def engine(self, at: float, effect: str, **fields: object) -> None:
        ts = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
        self.append(self.folder / LOG, json.dumps({"ts": ts, "effect": effect, **fields, "seconds": 0.5}) + "\n")

    def agent(self, name: str, text: str, at: float = NOON) -> Path:
        path = self.folder / "logs" / f"{name}.log"
        self.append(path, text)
        os.utime(path, (at, at))
        return path

    def append(self, path: Path, text: str) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)

    def texts(self, task: str = "") -> list[tuple[str, str]]:
        return [(line.source, line.text.partition(" ")[2]) for line in log_lines(self.repository, self.session, task)]


@pytest.fixture
def logs(sessions: Sessions) -> Logs:
    return Logs(sessions)


def test_lines_of_the_engine_and_of_agents_are_in_order_of_time(logs: Logs) -> None:
    logs.engine(NOON, "borrow workspace", task="DEV-001")
    logs.agent("DEV-001-1", "I begin\nI end\n", NOON + 1.25)
    logs.engine(NOON + 1.5, "land", task="DEV-001")
    logs.agent("VERIFY-001-1", "I test\n", NOON + 2)

    assert logs.texts() == [
        (ENGINE, "borrow workspace DEV-001 (0.5 s)"),
        ("DEV-001-1", "begin"),
        ("DEV-001-1", "end"),
        (ENGINE, "land DEV-001 (0.5 s)"),
        ("VERIFY-001-1", "test"),
    ]


def test_a_task_has_the_lines_of_all_its_attempts_and_no_others(logs: Logs) -> None:
    logs.engine(NOON, "land", task="DEV-001")
    logs.agent("DEV-001-2", "I retry\n", NOON + 1)
    logs.agent("DEV-001-1", "I try\n")
    logs.agent("DEV-0010-1", "I differ\n")

    assert logs.texts("DEV-001") == [("DEV-001-1", "try"), ("DEV-001-2", "retry")]


def test_an_effect_that_failed_ends_with_its_error(logs: Logs) -> None:
    logs.engine(NOON, "land", task="DEV-001", error="HostError: no space")

    assert logs.texts() == [(ENGINE, "land DEV-001 (0.5 s): HostError: no space")]


@pytest.mark.parametrize("text", ["not JSON", "[1]", '{"effect": "land"}', '{"ts": 5}'])
def test_a_line_of_the_engine_that_cannot_be_read_is_shown_as_it_is(logs: Logs, text: str) -> None:
    logs.append(logs.folder / LOG, text + "\n")

    assert [line.text for line in log_lines(logs.repository, logs.session)] == [text]


def test_a_session_that_was_never_run_has_no_lines(sessions: Sessions) -> None:
    assert log_lines(sessions.repository, sessions.start()) == []


def test_an_unknown_task_is_an_error_with_a_hint(logs: Logs) -> None:
    with pytest.raises(UserError, match='no task "DEV-009"') as caught:
        log_lines(logs.repository, logs.session, "DEV-009")

    assert caught.value.hint == f"iterdev status {logs.session}"


def followed(logs: Logs, *steps: object) -> list[LogLine]:
    """What is followed while an engine runs, which does one step after each read and ends after the last one."""
    me = identity(os.getpid())
    assert me
    log, left = logs.repository.log(logs.session), list(steps)
    with logs.repository.lease(log):
        logs.repository.journal.take(logs.session, me)

        def sleep(_: float) -> None:
            step = left.pop(0)
            assert callable(step)
            step()
            if not left:
                logs.repository.journal.release(logs.session)

        return list(follow_logs(logs.repository, logs.session, sleep=sleep))


def test_new_lines_are_followed_until_the_engine_ends(logs: Logs) -> None:
    logs.agent("DEV-001-1", "one\n")

    lines = followed(logs, lambda: logs.agent("DEV-001-1", "two\n"), lambda: logs.agent("VERIFY-001-1", "three\n"))

    assert [(line.source, line.text) for line in lines] == [
        ("DEV-001-1", "one"),
        ("DEV-001-1", "two"),
        ("VERIFY-001-1", "three"),
    ]


def test_lines_with_a_time_are_where_they_were_written(logs: Logs) -> None:
    later, earlier = (datetime.fromtimestamp(NOON + shift, UTC).isoformat(timespec="seconds") for shift in (2, -2))
    logs.agent("DEV-001-1", f"{earlier} first of all\n{later} last of all\n", NOON + 5)
    logs.engine(NOON, "land", task="DEV-001")

    assert logs.texts() == [("DEV-001-1", "of all"), (ENGINE, "land DEV-001 (0.5 s)"), ("DEV-001-1", "of all")]


@pytest.mark.parametrize("text", ["2026-99-99T12:00:00+00:00 x", "0001-01-01T00:00:00+14:00 x", "12:00:00 x"])
def test_what_only_looks_like_a_time_is_text(logs: Logs, text: str) -> None:
    path = logs.agent("DEV-001-1", f"{text}\n")

    assert LogTail(path).new_lines() == [text]


def test_only_whole_lines_are_followed(logs: Logs) -> None:
    lines = followed(logs, lambda: logs.agent("DEV-001-1", "ha"), lambda: logs.agent("DEV-001-1", "lf\nnex"))

    assert [line.text for line in lines] == ["half"]


def test_a_log_that_was_cut_is_followed_from_its_end(logs: Logs) -> None:
    path = logs.agent("DEV-001-1", "one\ntwo\n")

    lines = followed(logs, lambda: path.write_text("two\n"), lambda: logs.agent("DEV-001-1", "three\n"))

    assert [line.text for line in lines] == ["one", "two", "three"]


def test_without_an_engine_following_ends_at_once(logs: Logs) -> None:
    logs.agent("DEV-001-1", "one\n")

    def sleep(_: float) -> None:
        raise AssertionError("nothing to wait for")

    assert [line.text for line in follow_logs(logs.repository, logs.session, sleep=sleep)] == ["one"]


def test_a_secret_is_in_no_line(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREETING_PASSWORD", SECRET)
    script = sessions.repo.home / "team.toml"
    said = f'role = "developer"\nsay = ["the password is {SECRET}"]\nresult = {{ findings = "it greets" }}'
    script.write_text(f'[[rule]]\n{said}\nwrite = {{ "greeting.txt" = "hello" }}\n', encoding="utf-8")
    sessions.repo.write(
        "iterdev.toml",
        f"""
        [run]
        agent = "played"
        [project]
        test = "true {SECRET}"
        [agents.played]
        script = "{script}"
        """,
    )
    sessions.repo.commit("configure")
    repository = sessions.open()
    request = Request(requirement="Add a greeting", pipeline=Pipeline.patch, auto=True)
    session: SessionId = start(repository, request)

    anyio.run(run_session, repository, session, RunObserver())

    lines = log_lines(repository, session)
    assert {"engine", "DEV-001-1"} <= {line.source for line in lines}
    assert [line.text for line in lines if "password" in line.text] == ["the password is [secret]"]
    assert not [line for line in lines if SECRET in line.text]
