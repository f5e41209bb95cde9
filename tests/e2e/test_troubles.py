"""Providers that ask for patience, agents that cannot be used, and budgets: what a run does about them by itself."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.conftest import Repo, make_repo
from tests.e2e.conftest import Background, Terminal, eventually, script
from tests.session_files import left_behind, rows, statuses

from iterdev.core.limits.providers import ProviderPaused
from iterdev.core.session import events
from iterdev.core.types import TaskId
from iterdev.store.journal import NAME, Journal

LIMITED = """
[[rule]]
task = "DEV-limited"
attempt = 1
run = '''echo '{"usage": {"input_tokens": 7, "output_tokens": 3, "cost_usd": 0.5}}' > $ITERDEV_RESULT'''
fail = { kind = "rate limited", reset_in = 5 }

[[rule]]
task = "DEV-first"
run = "touch {home}/is-working; until ls {home}/iterdev/paused-*.json; do sleep 0.05; done >/dev/null 2>&1"
write = { "{task}.txt" = "x" }
result = {}

[[rule]]
role = "developer"
write = { "{task}.txt" = "x" }
result = {}
"""


def a_table(repo: Repo, *tasks: str) -> str:
    table = repo.home / "table.csv"
    table.write_text("id,description,role\n" + "".join(f"{task},do it,developer\n" for task in tasks), encoding="utf-8")
    return str(table)


def entries(repo: Repo) -> list[events.Entry]:
    """The journal of the only session."""
    journal = Journal(repo.path / ".workflow" / NAME)
    try:
        (session,) = journal.sessions()
        return journal.read(session)
    finally:
        journal.close()


def starts(repo: Repo) -> list[tuple[float, TaskId]]:
    return [(entry.at, entry.event.task) for entry in entries(repo) if isinstance(entry.event, events.AttemptStarted)]


def the_limit(repo: Repo) -> tuple[float, float]:
    """When a run was told of a limit, and when the provider answers again."""
    (found,) = (
        (entry.at, entry.event.outcome.reset_at)
        for entry in entries(repo)
        if isinstance(entry.event, events.AttemptEnded) and isinstance(entry.event.outcome, events.Limited)
    )
    at, until = found
    assert until
    return at, until


def pause_files(repo: Repo) -> list[Path]:
    return list((repo.home / "iterdev").glob("paused-*.json"))


def document(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    loaded: dict[str, object] = json.loads(done.stdout)
    return loaded


def test_a_run_waits_for_its_provider_shows_it_starts_nothing_meanwhile_and_goes_on_by_itself(repo: Repo) -> None:
    # Long enough for three looks at it, one after the other, on a machine with other things to do.
    script(repo, LIMITED.replace("{home}", str(repo.home)).replace("reset_in = 5", "reset_in = 20"))
    table = a_table(repo, "DEV-limited", "DEV-second", "DEV-third")

    with Background(repo, "run", "-y", "-c", "1", "--tasks", table) as running:
        eventually(lambda: pause_files(repo), "a pause")
        session = repo.folder().name
        told = repo.iterdev("status").stdout
        shown = document(repo.iterdev("status", "--json"))
        why = repo.iterdev("why", session, "DEV-third").stdout
        run = running.end()

    began, until = the_limit(repo)
    assert run.returncode == 0, run.stderr
    assert set(statuses(repo.folder()).values()) == {"completed"}
    assert [task for at, task in starts(repo) if began <= at < until] == []
    assert len(starts(repo)) == 4
    for text in (run.stdout, told, why):
        assert "the provider of mine is paused until " in text
    assert [pause["agents"] for pause in shown["pauses"]] == [["mine"]]
    assert shown["usage"] == {"input_tokens": 7, "output_tokens": 3, "cost_usd": 0.5}
    assert left_behind(repo) == []


def test_a_pause_holds_for_runs_in_other_repositories_too(repo: Repo, tmp_path: Path) -> None:
    script(repo, LIMITED.replace("{home}", str(repo.home)))
    second, third = (make_repo(tmp_path / name) for name in ("second", "third"))
    for other in (second, third):
        other.env["ITERDEV_HOME"] = repo.env["ITERDEV_HOME"]
        other.write("iterdev.toml", (repo.path / "iterdev.toml").read_text(encoding="utf-8"))
        other.commit("the same agent")

    with Background(second, "run", "-y", "-c", "1", "--tasks", a_table(second, "DEV-first", "DEV-second")) as early:
        eventually((repo.home / "is-working").exists, "an agent at work in the second repository")
        with Background(repo, "run", "-y", "--tasks", a_table(repo, "DEV-limited")) as limited:
            eventually(lambda: pause_files(repo), "a pause")
            late = third.iterdev("run", "-y", "--tasks", a_table(third, "DEV-other"))
            runs = [late, limited.end(), early.end()]

    began, until = the_limit(repo)
    heard = [entry.event for entry in entries(second) if isinstance(entry.event, ProviderPaused)]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert [task for each in (repo, second, third) for at, task in starts(each) if began <= at < until] == []
    assert [pause.until for pause in heard] == [until]
    assert "the provider of mine is paused until " in runs[2].stdout
    assert left_behind(repo) + left_behind(second) + left_behind(third) == []


def test_in_a_terminal_the_pause_and_the_spending_are_in_the_picture(repo: Repo, terminal: Terminal) -> None:
    script(repo, LIMITED.replace("{home}", str(repo.home)))
    terminal.type(f"iterdev run -y --tasks {a_table(repo, 'DEV-limited')}")

    paused = terminal.until("the provider of mine is paused for 0:0", "until ")
    ended = terminal.until("1 completed")

    assert "spent: developer $0.50, 10 tokens · mine $0.50, 10 tokens" in paused
    assert "is paused" not in ended.rpartition("spent: ")[0].rpartition("DEV-limited")[2]


def two_agents(repo: Repo, first: str, more: str = "") -> None:
    """`mine`, which plays the script, and `other`, which takes over and does its work."""
    other = repo.home / "other.toml"
    other.write_text('[[rule]]\nwrite = { "{task}.txt" = "x" }\nresult = { usage = { cost_usd = 0.25 } }\n')
    fallback = f'fallback = "other"\n[agents.other]\nscript = "{other}"\n'
    script(repo, first, fallback + more)


@pytest.mark.parametrize("kind", ["not logged in", "not installed", "context too long", "budget used up"])
def test_an_agent_that_cannot_do_it_gives_way_to_the_one_that_takes_over(repo: Repo, kind: str) -> None:
    two_agents(repo, f'[[rule]]\nwrite = {{ "mine.txt" = "x" }}\nfail = {{ kind = "{kind}" }}\n')

    run = repo.iterdev("run", "-y", "--tasks", a_table(repo, "DEV-one"))

    assert run.returncode == 0, run.stdout
    assert [line.strip() for line in run.stdout.splitlines() if "started" in line] == [
        "DEV-one started (developer, mine, attempt 1)",
        "DEV-one started (developer, other, attempt 2)",
    ]
    warning = next(line for line in run.stdout.splitlines() if "warning: DEV-one:" in line)
    assert 'The agent "mine"' in warning
    assert "this failure is part of the script; other takes over" in warning
    assert "  by agent: other $0.25" in repo.iterdev("status").stdout
    assert left_behind(repo) == []


def test_a_limited_agent_is_not_waited_for_when_another_one_takes_over(repo: Repo) -> None:
    two_agents(repo, '[[rule]]\nfail = { kind = "rate limited", reset_in = 600 }\n')

    run = repo.iterdev("run", "-y", "-c", "1", "--tasks", a_table(repo, "DEV-one", "DEV-two"))

    assert run.returncode == 0, run.stdout
    agents = [entry.event.agent for entry in entries(repo) if isinstance(entry.event, events.AttemptStarted)]
    assert agents == ["mine", "other", "other"]


def test_without_anybody_to_take_over_the_run_fails_with_the_words_of_the_trouble(repo: Repo) -> None:
    script(repo, '[[rule]]\nfail = { kind = "not logged in" }\n')

    run = repo.iterdev("run", "-y", "--tasks", a_table(repo, "DEV-one"))

    assert run.returncode == 1
    assert "not logged in" in rows(repo.folder())["DEV-one"]["error"]


def test_an_agent_that_is_not_installed_gives_way_before_anybody_is_told_to_install_it(repo: Repo) -> None:
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    ghost = '[agents.ghost]\ncommand = ["no-such-program"]\nfallback = "{}"\n'
    repo.write("iterdev.toml", f"{text}\n{ghost.format('mine')}")

    run = repo.iterdev("run", "-y", "--agent", "ghost", "--tasks", a_table(repo, "DEV-one", "DEV-two"))

    assert run.returncode == 0, run.stderr
    assert '"no-such-program"' in run.stdout
    assert "mine takes over" in run.stdout
    assert left_behind(repo) == []


def test_when_nobody_of_those_who_take_over_is_installed_nothing_is_started(repo: Repo) -> None:
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    ghosts = '[agents.one]\ncommand = ["no-such"]\nfallback = "two"\n[agents.two]\ncommand = ["none-either"]\n'
    repo.write("iterdev.toml", f"{text}\n{ghosts}")

    missing = repo.iterdev("run", "-y", "--agent", "one", "Fix it")
    repo.write("iterdev.toml", f"{text}\n{ghosts}".replace('"two"', '"thre"'))
    unknown = repo.iterdev("run", "-y", "--agent", "one", "Fix it")

    assert (missing.returncode, unknown.returncode) == (4, 2)
    assert '"no-such"' in missing.stderr
    assert 'There is no agent "thre"' in unknown.stderr
    assert not (repo.path / ".workflow" / ".csv-wave").exists()


def test_an_overloaded_provider_is_asked_again_in_the_same_attempt(repo: Repo) -> None:
    steps = '[[rule]]\nattempt = 1\nfail = { kind = "overloaded" }\n[[rule]]\nwrite = { "a.txt" = "x" }\nresult = {}\n'
    script(repo, steps)

    run = repo.iterdev("run", "-y", "--tasks", a_table(repo, "DEV-one"))

    ends = [entry.event for entry in entries(repo) if isinstance(entry.event, events.AttemptEnded)]
    assert run.returncode == 0, run.stdout
    assert [(end.number, end.requests) for end in ends] == [(1, 2)]


MENDING = """
[[rule]]
role = "developer"
write = { "a.txt" = "wrong" }
result = {}

[[rule]]
role = "tester"
attempt = 1
fail = { kind = "rate limited", reset_in = 1 }

[[rule]]
role = "tester"
write = { "a.txt" = "right" }
result = {}
"""


def test_a_limit_while_failing_tests_are_mended_is_waited_for_too(repo: Repo) -> None:
    script(repo, MENDING)
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", text.replace('test = "true"', 'test = "! grep wrong a.txt"'))

    run = repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")

    assert run.returncode == 0, run.stdout
    assert "VERIFY-001 started (tester, mine, attempt 2)" in run.stdout
    assert repo.git("show", f"iterdev/{repo.folder().name}:a.txt") == "right"


MALFORMED = """
[[rule]]
run = "echo asked >> $HOME/asked"
write = { "a.txt" = "x" }
result_text = '{"usage": {"input_tokens": 6, "output_tokens": 4, "cost_usd": 2.0}}'
"""


@pytest.mark.parametrize("key", ["budget_usd = 1.0", "task_budget_usd = 1.0", "day_budget_tokens = 10"])
def test_a_result_is_not_asked_for_again_once_a_budget_is_used_up_and_the_user_decides(repo: Repo, key: str) -> None:
    script(repo, MALFORMED)
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", text.replace("[run]", f"[run]\n{key}"))

    repo.iterdev("run", "--tasks", a_table(repo, "DEV-one"))
    session = repo.folder().name
    repo.iterdev("answer", session, "plan", "approve")
    asking = repo.iterdev("resume")
    asked = (repo.home / "asked").read_text().split()
    status = repo.iterdev("status").stdout
    repo.iterdev("answer", session, "budget", "go-on")
    repo.iterdev("resume")

    assert asking.returncode == 5
    assert "is used up" in asking.stdout
    assert f"iterdev answer {session} budget go-on" in asking.stdout
    assert len(asked) == 1
    assert "Spent: 6 tokens in, 4 out, $2.00" in status
    assert "  by task: DEV-one $2.00, 10 tokens" in status
    assert len((repo.home / "asked").read_text().split()) == 4
    assert left_behind(repo) == []


def test_with_nobody_to_ask_a_used_up_budget_fails_the_rest_with_words(repo: Repo) -> None:
    script(repo, MALFORMED)
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", text.replace("[run]", "[run]\ntask_budget_usd = 1.0"))

    run = repo.iterdev("run", "-y", "--tasks", a_table(repo, "DEV-one"))

    assert run.returncode == 1
    assert rows(repo.folder())["DEV-one"]["error"] == "the budget of $1 for DEV-one is used up ($2.00 spent)"


def test_what_another_session_spent_today_is_taken_from_the_budget_of_the_day(repo: Repo) -> None:
    repo.behave(developer={"result": {"usage": {"cost_usd": 2.0}}})
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", text.replace("[run]", "[run]\nday_budget_usd = 1.5"))

    first = repo.iterdev("run", "-y", "--tasks", a_table(repo, "DEV-one"))
    second = repo.iterdev("run", "-y", "--tasks", a_table(repo, "DEV-two"))

    assert first.returncode == 0, first.stdout
    assert second.returncode == 1
    assert "the budget of $1.5 for one day is used up ($2.00 spent)" in second.stdout
    assert [call["task"] for call in repo.calls()] == ["DEV-one"]


def test_what_a_run_cost_is_told_by_role_task_and_agent(repo: Repo) -> None:
    repo.behave(
        developer={"result": {"usage": {"cost_usd": 2.0}}},
        reviewer={"result": {"usage": {"input_tokens": 20, "output_tokens": 1}}},
    )
    repo.iterdev("run", "-y", "--pipeline", "sprint", "Add a greeting")

    shown = document(repo.iterdev("status", "--json"))["spending"]
    text = repo.iterdev("status").stdout
    report = repo.iterdev("report").stdout

    nothing = {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0}
    reviewed = nothing | {"input_tokens": 20, "output_tokens": 1}
    assert shown == {
        "roles": {"developer": nothing | {"cost_usd": 2.0}, "reviewer": reviewed},
        "tasks": {"DEV-001": nothing | {"cost_usd": 2.0}, "REVIEW-001": reviewed},
        "agents": {"mine": reviewed | {"cost_usd": 2.0}},
    }
    assert "  by role: developer $2.00; reviewer 21 tokens" in text
    assert "| Task | DEV-001 | $2.00 |" in report
