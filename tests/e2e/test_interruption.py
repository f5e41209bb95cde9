"""Stopping a run: once in an orderly way, twice at once; the state is saved either way."""

import re
import signal

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Background, Terminal, agent_at_work, eventually, script, typed
from tests.session_files import left_behind, processes, statuses

pytestmark = pytest.mark.elsewhere


def test_ctrl_c_in_a_terminal_stops_says_how_to_go_on_and_exits_with_130(repo: Repo, terminal: Terminal) -> None:
    repo.behave(developer={"write": {"half.txt": "half\n"}, "sleep": 600})
    terminal.type("iterdev run -y 'Fix the greeting'; echo exit=$?")
    terminal.until("DEV-001", "mine is working")
    eventually(repo.calls, "the agent")

    terminal.press("C-c")

    screen = terminal.until("exit=130")
    session = repo.folder().name
    assert "stopping" in screen
    assert f"Continue with: iterdev resume {session}" in screen
    assert "Traceback" not in screen
    terminal.type("clear")
    eventually(lambda: not [line for line in processes(repo) if "agent.py" in line], "the end of the agent")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_agents_keeps_their_work_and_the_session_goes_on_later(
    repo: Repo, number: signal.Signals
) -> None:
    with agent_at_work(repo, "run", "-y", "Fix the greeting") as running:
        running.process.send_signal(number)
        ended = running.end()

    session = repo.folder().name
    left = left_behind(repo)
    kept = repo.git("show", f"refs/iterdev/{session}/DEV-001/1:half.txt")
    status = repo.iterdev("status").stdout
    repo.behave(developer={"write": {"whole.txt": "whole\n"}})
    resumed = repo.iterdev("resume")

    assert ended.returncode == 130
    assert "Traceback" not in ended.stderr
    assert f"iterdev resume {session}" in ended.stdout
    assert left == []
    assert kept == "half"
    assert "[WAIT] DEV-001" in status
    assert "interrupted" in status
    assert resumed.returncode == 0, resumed.stderr
    assert statuses(repo.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_session_exists_ends_the_command_in_the_same_way(
    repo: Repo, number: signal.Signals
) -> None:
    slow = repo.home / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(f"#!/bin/sh\ntouch {repo.home}/asked\nexec sleep 600\n")
    slow.chmod(0o755)
    with Background(repo, "run", "-y", "Fix it", PATH=f"{slow.parent}:{repo.env['PATH']}") as running:
        eventually((repo.home / "asked").exists, "git")
        running.process.send_signal(number)
        ended = running.end()

    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (130, "", "")
    assert left_behind(repo) == []
    assert not (repo.path / ".workflow").exists()


def test_a_second_signal_stops_at_once_and_nothing_is_lost(repo: Repo) -> None:
    script(
        repo,
        f"""
        [[rule]]
        role = "developer"
        attempt = 1
        ignore_term = true
        write = {{ "half.txt" = "half" }}
        run = "touch {repo.home}/working"
        hang = true

        [[rule]]
        role = "developer"
        write = {{ "whole.txt" = "whole" }}
        result = {{}}
        """,
    )
    with Background(repo, "run", "-y", "Fix the greeting") as running:
        eventually((repo.home / "working").exists, "the agent")
        running.process.send_signal(signal.SIGINT)
        assert running.process.stderr
        first = running.process.stderr.readline()
        running.process.send_signal(signal.SIGINT)
        ended = running.end()

    eventually(lambda: not processes(repo), "the end of the agent")
    resumed = repo.iterdev("resume")
    assert "interrupt again" in first
    assert ended.returncode == 130
    assert resumed.returncode == 0, resumed.stderr
    assert repo.git("show", f"refs/iterdev/{repo.folder().name}/DEV-001/1:half.txt") == "half"
    assert left_behind(repo) == []


def test_a_run_that_waits_for_a_providers_limit_can_be_stopped_and_tells_what_it_waits_for(repo: Repo) -> None:
    script(
        repo,
        """
        [[rule]]
        attempt = 1
        fail = { kind = "rate limited", reset_in = 600 }
        """,
    )
    with Background(repo, "run", "-y", "Fix the greeting") as running:
        eventually(lambda: '"requests": 1' in repo.iterdev("status", "--json").stdout, "the limit")
        status = repo.iterdev("status").stdout
        why = repo.iterdev("why", repo.folder().name, "DEV-001").stdout
        running.process.send_signal(signal.SIGINT)
        ended = running.end()

    assert "State: running" in status
    assert re.search("DEV-001 .*limit", status)
    assert re.search("mine.* limit", why)
    assert re.search(r"\d\d:\d\d", why)
    assert ended.returncode == 130
    # Other runs still have to know of the limit.
    assert [line for line in left_behind(repo) if "/iterdev/paused-" not in line] == []


def test_an_interrupted_question_stays_open(repo: Repo, terminal: Terminal) -> None:
    terminal.type("iterdev run 'Add a greeting'; echo exit=$?")
    terminal.until("pipeline [approve]:")

    terminal.press("C-c")

    screen = terminal.until("exit=130")
    assert f"iterdev resume {repo.folder().name}" in screen
    assert "Traceback" not in screen
    assert "pipeline" in repo.iterdev("status").stdout


def test_a_reader_that_goes_away_is_no_failure_of_the_tasks(repo: Repo) -> None:
    """The run may go on unseen, or stop as it does for a signal; it must not claim that tasks failed."""
    line = "iterdev run -y 'Fix the greeting' | head -1 >&2; exit ${PIPESTATUS[0]}"

    piped = typed(repo, line)

    assert piped.returncode in {0, 130}
    assert "Traceback" not in piped.stderr
    assert "defect" not in piped.stderr
    resumed = repo.iterdev("resume", repo.folder().name)
    assert resumed.returncode == 0
    assert statuses(repo.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed"}
    assert left_behind(repo) == []


@pytest.mark.requirement("R122", "R123")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_session_in_which_nothing_moves_tells_the_chain_that_holds_it_up(repo: Repo, engine: str) -> None:
    with agent_at_work(repo, "run", "-y", "--pipeline", "sprint", "--engine", engine, "Add a greeting") as running:
        moving = repo.iterdev("status").stdout
        running.kill()

    shown = repo.iterdev("status")

    session = repo.folder(engine).name
    assert "stalled" not in moving
    assert "stalled: VERIFY-001 is blocked by DEV-001 (in_progress)" in shown.stdout
    assert f"interrupted; continue with `iterdev resume {session}`" in shown.stdout
