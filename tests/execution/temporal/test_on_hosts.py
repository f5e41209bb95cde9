"""Sessions whose attempts run on hosts, through a real Temporal server and a git remote."""

import signal
import sys
from collections.abc import Iterator
from datetime import timedelta

import anyio
import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Background, eventually
from tests.execution.test_wire_format import a_job
from tests.hosts import Hosts, hosts_of, journal_of
from tests.issue_agents import create_issues, status_of_issues, use_program
from tests.session_files import left_behind, statuses
from tests.temporal_server import TemporalServer

from iterdev.core.session.events import AttemptEnded, AttemptPlaced, Interrupted
from iterdev.core.session.landing_events import LandingTestEnded
from iterdev.execution.temporal.connection import connect
from iterdev.execution.temporal.keys import add_key, read_keys
from iterdev.execution.temporal.names import ATTEMPT, activity_id, agent_queue
from iterdev.execution.wire_format import HostReport, Order, decode, encode, order_of, report_of

pytestmark = pytest.mark.temporal

PATCH = ("run", "-y", "--pipeline", "patch", "Fix it")


@pytest.fixture
def hosts(repo: Repo, server: TemporalServer) -> Iterator[Hosts]:
    with hosts_of(repo, server, "one") as running:
        yield running


@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_sprint_with_a_fix_round_runs_on_hosts(repo: Repo, hosts: Hosts, engine: str) -> None:
    low = dict.fromkeys(("correctness", "completeness", "maintainability", "security"), 5)
    repo.behave(**{"REVIEW-001": {"result": {"scores": low}}})

    done = repo.iterdev("run", "-y", "--engine", engine, "--pipeline", "sprint", "Add a greeting")

    session = repo.folder(engine).name
    landed = repo.git("ls-tree", "--name-only", f"iterdev/{session}").splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"DEV-001.txt", "DEV-fix-1.txt"} <= set(landed)
    assert [call["task"] for call in repo.calls()].count("REVIEW-002") == 1
    assert left_behind(repo) == []


def test_nothing_of_an_archived_session_is_left_on_the_git_remote(repo: Repo, hosts: Hosts) -> None:
    repo.iterdev(*PATCH)
    before = repo.git("ls-remote", hosts.remote)

    done = repo.iterdev("archive")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "_given" in before
    assert repo.git("ls-remote", hosts.remote) == ""


def test_what_an_agent_on_a_host_says_and_does_with_tools_and_board_comes_back(repo: Repo, hosts: Hosts) -> None:
    found = '{"ts": "2026-01-01T00:00:00Z", "worker": "DEV-001", "type": "convention", "data": {"name": "tabs"}}'
    tell = f"{sys.executable} -m iterdev team log --summary 'half done'"
    look = "test -f $ITERDEV_SESSION_DIR/tasks.csv"
    run = f"echo working on it && {look} && {tell} && echo '{found}' >> $ITERDEV_SESSION_DIR/discoveries.ndjson"
    repo.behave(**{"DEV-001": {"run": run}})

    done = repo.iterdev(*PATCH)

    folder = repo.folder()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "working on it" in (folder / "logs" / "DEV-001-1.log").read_text()
    assert "[developer] half done" in (folder / ".msg" / "messages.jsonl").read_text()
    assert '"name": "tabs"' in (folder / "discoveries.ndjson").read_text()


def test_work_of_an_attempt_that_failed_is_kept(repo: Repo, hosts: Hosts) -> None:
    repo.behave(**{"DEV-001": {"write": {"half.txt": "half"}, "result": {"status": "failed", "error": "no"}}})

    repo.iterdev(*PATCH)

    folder = repo.folder()
    assert statuses(folder)["DEV-001"] == "failed"
    assert repo.git("show", f"refs/iterdev/{folder.name}/DEV-001/1:half.txt") == "half"


def test_the_host_of_an_attempt_is_in_the_journal(repo: Repo, hosts: Hosts) -> None:
    repo.behave(**{"DEV-001": {"sleep": 600}})

    with Background(repo, *PATCH) as running:
        placed = eventually(lambda: [event.host for event in journal_of(repo, AttemptPlaced)], "the placement")
        running.process.send_signal(signal.SIGINT)
        done = running.end()

    assert placed == ["one"]
    assert done.returncode == 130, done.stdout + done.stderr
    # The agent was ended, and its attempt reported.
    (ended,) = journal_of(repo, AttemptEnded)
    assert isinstance(ended.outcome, Interrupted)
    assert repo.git("show", f"{ended.outcome.commit}:DEV-001.txt") == "DEV-001 attempt 1"


def test_the_next_attempt_can_read_what_an_earlier_one_left(repo: Repo, hosts: Hosts) -> None:
    first = {"write": {"half.txt": "half"}, "result": {"status": "failed", "error": "no"}}
    session_dir, find = "$ITERDEV_SESSION_DIR", "git rev-list --all --objects | grep -c half.txt > found.txt"
    repo.behave(**{"DEV-001#1": first, "DEV-001#2": {"run": f"test -d {session_dir} && {find}"}})
    repo.iterdev(*PATCH)

    done = repo.iterdev("retry")

    assert done.returncode == 0, done.stdout + done.stderr
    assert repo.git("show", f"iterdev/{repo.folder().name}:found.txt") == "1"


def test_issues_are_resolved_on_hosts_and_their_landings_are_tested_there(repo: Repo, server: TemporalServer) -> None:
    use_program(repo)
    with hosts_of(repo, server, "one") as hosts:
        names = create_issues(repo, 3)

        done = repo.iterdev("resolve", "-y", "--mode", "batch", *names)

        log = hosts.log("one")
    tests = journal_of(repo, LandingTestEnded)
    assert done.returncode == 0, done.stdout + done.stderr + log
    assert set(status_of_issues(repo).values()) == {"completed"}
    assert tests
    assert all(test.passed for test in tests)


def test_a_host_refuses_what_is_not_on_its_list_and_nothing_runs(repo: Repo, server: TemporalServer) -> None:
    with hosts_of(repo, server) as hosts:
        hosts.start("one", remote="git@example.com:other.git")
        hosts.wait()

        done = repo.iterdev(*PATCH)

    assert done.returncode == 4, done.stdout + done.stderr
    assert f'one: The host "one" does not work on "{hosts.remote}"' in done.stderr
    assert repo.calls() == []


async def answered(hosts: Hosts, order: Order) -> object:
    """The report of a host of the agent `mine` on an order that no engine of ours would give."""
    connection = await connect("default", read_keys(hosts.key), environment=hosts.server.environment)
    data = await connection.client.execute_activity(
        ATTEMPT,
        encode(order),
        id=activity_id(order.job.shared_name, order.job.task.id, order.job.fence),
        task_queue=agent_queue("mine"),
        result_type=bytes,
        start_to_close_timeout=timedelta(seconds=60),
        heartbeat_timeout=timedelta(seconds=30),
    )
    return report_of(decode(data, HostReport), order.job, now=0).outcome


def test_a_host_refuses_an_agent_that_it_does_not_offer_and_nothing_runs(repo: Repo, hosts: Hosts) -> None:
    order = order_of(a_job(agent="claude"), hosts.remote, heartbeat_timeout=30)

    outcome = anyio.run(answered, hosts, order)

    assert outcome == Interrupted(problem='one: The host "one" does not offer the agent "claude"')
    assert list((hosts.root / "one" / "iterdev" / "host" / "workspaces").glob("*/*/*")) == []


def test_a_host_with_another_key_reads_no_order_and_nothing_runs(repo: Repo, server: TemporalServer) -> None:
    with hosts_of(repo, server) as hosts:
        hosts.start("one", key=add_key(str(hosts.root / "another")).file)
        hosts.wait()

        done = repo.iterdev(*PATCH)

    assert done.returncode == 4, done.stdout + done.stderr
    assert 'is sealed with the key "' in done.stderr
    assert "Fix it" not in done.stderr
    assert repo.calls() == []


def test_a_session_does_not_begin_while_no_host_offers_its_agent(repo: Repo, server: TemporalServer) -> None:
    (repo.path / "iterdev.toml").write_text((repo.path / "iterdev.toml").read_text().replace("mine", "nobodys"))
    with hosts_of(repo, server):
        done = repo.iterdev(*PATCH)

    assert done.returncode == 4, done.stdout + done.stderr
    assert 'No host offers the agent "nobodys"' in done.stderr
    assert repo.calls() == []


CURIOUS = """
"An agent that tries to read what is not its own, and says what it could."
import json, os, sys
sys.stdin.read()
read = [name for name in NAMES if os.path.exists(name)]
with open("read.txt", "w") as file:
    file.write(" ".join(read) or "nothing")
with open(os.path.join(os.environ["ITERDEV_SESSION_DIR"], "tasks.csv")) as table, open("table.txt", "w") as copy:
    copy.write(table.read())
with open(os.path.join(os.environ["ITERDEV_SESSION_DIR"], "discoveries.ndjson"), "a") as board:
    board.write('{"ts": "", "worker": "DEV-001", "type": "convention", "data": {"name": "tabs"}}' + chr(10))
with open(os.environ["ITERDEV_RESULT"], "w") as file:
    json.dump({"id": os.environ["ITERDEV_TASK"], "status": "completed", "findings": "looked", "error": ""}, file)
"""


def test_an_agent_in_the_sandbox_of_a_host_cannot_read_its_key_or_its_orders(
    repo: Repo, server: TemporalServer
) -> None:
    file = repo.path / "iterdev.toml"
    file.write_text(file.read_text().replace("[run]", "[run]\nsandbox = true"))
    with hosts_of(repo, server, "one") as hosts:
        own = hosts.root / "one"
        names = [hosts.key, str(own / ".config"), str(own / "iterdev" / "host" / "orders")]
        (repo.agent_folder / "agent.py").write_text(CURIOUS.replace("NAMES", repr(names)))

        done = repo.iterdev(*PATCH)

    assert done.returncode == 0, done.stdout + done.stderr + hosts.log("one")
    assert repo.git("show", f"iterdev/{repo.folder().name}:read.txt") == "nothing"
    assert "DEV-001" in repo.git("show", f"iterdev/{repo.folder().name}:table.txt")
    assert '"name": "tabs"' in (repo.folder() / "discoveries.ndjson").read_text()
