"""Which session a command means: the first argument, --session-id, or the one that was last active."""

import json
import shlex

import pytest
from tests.conftest import Repo

TAKING_A_SESSION = [
    "status {}",
    "report {}",
    "replay {}",
    "logs {}",
    "logs {} DEV-001",
    "why {} DEV-001",
    "feedback add {} The greeting is too long",
    "feedback list {}",
    "debt add {} 'The parser is copied'",
    "debt list {}",
    "debt report {}",
    "team list {}",
    "team status {}",
    "team log {} --from tester --summary hello",
    "lock list {}",
    "lock acquire {} --resource a.py --task DEV-001 --role developer",
    "lock release {} --resource a.py --task DEV-001",
    "checkpoint save {} --task DEV-001 --data '{{}}'",
    "checkpoint list {}",
]
FORMS = ["ids-fix-the-sec", "--session-id ids-fix-the-sec"]


@pytest.fixture
def two(repo: Repo) -> Repo:
    """Two sessions that wait for an answer; something happened last in the one that was started first."""
    for text in ("Fix the first", "Fix the second"):
        repo.iterdev("run", "--pipeline", "patch", text)
    repo.iterdev("feedback", "add", "ids-fix-the-first", "hello")
    return repo


def names(repo: Repo) -> list[str]:
    return [line.split()[0] for line in repo.iterdev("sessions").stdout.splitlines()]


@pytest.mark.parametrize("command", TAKING_A_SESSION)
def test_a_session_is_named_by_a_beginning_as_an_argument_or_an_option(two: Repo, command: str) -> None:
    done = [two.iterdev(*shlex.split(command.format(form))) for form in FORMS]

    assert [(one.returncode, one.stderr) for one in done] == [(0, ""), (0, "")]


@pytest.mark.parametrize("form", FORMS)
def test_a_question_of_a_session_is_answered_by_its_beginning(two: Repo, form: str) -> None:
    done = two.iterdev("answer", *form.split(), "plan", "approve")

    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "plan: approve")


@pytest.mark.parametrize("command", TAKING_A_SESSION)
def test_an_ambiguous_beginning_lists_the_candidates(two: Repo, command: str) -> None:
    done = two.iterdev(*shlex.split(command.format("--session-id ids-fix")))

    assert (done.returncode, done.stdout) == (2, "")
    assert '"ids-fix" fits 2 sessions' in done.stderr
    assert all(name in done.stderr for name in names(two))


def test_without_a_name_the_session_that_was_last_active_is_meant(two: Repo) -> None:
    first, second = names(two)

    before = json.loads(two.iterdev("status", "--json").stdout)["session"]
    two.iterdev("debt", "add", second, "something")
    after = json.loads(two.iterdev("status", "--json").stdout)["session"]
    listed = json.loads(two.iterdev("debt", "list", "--json").stdout)["tech_debt_items"]

    assert (before, after) == (first, second)
    assert [item["description"] for item in listed] == ["something"]


@pytest.mark.parametrize(
    "words",
    [["why", "DEV-001"], ["logs", "DEV-001"], ["answer", "plan", "approve"], ["lock", "list"], ["team", "list"]],
)
def test_the_other_arguments_may_stand_alone(two: Repo, words: list[str]) -> None:
    done = two.iterdev(*words)

    assert (done.returncode, done.stderr) == (0, "")


def test_a_text_does_not_begin_with_a_session_because_of_a_short_word(two: Repo) -> None:
    done = two.iterdev("feedback", "add", "i", "think", "ids-fix", "is", "fine", "--json")

    assert json.loads(done.stdout)["description"] == "i think ids-fix is fine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["status", "ids-fix-the-f", "--session-id", "ids-fix-the-s"], "both name a session"),
        (["status", "ids-fix-the-f", "ids-fix-the-s"], "one word too many"),
        (["logs", "ids-fix-the-f", "DEV-001", "more"], "one word too many"),
        (["why"], "Missing argument 'TASK'"),
        (["answer", "plan"], "Missing argument 'GATE'"),
    ],
)
def test_a_wrong_number_of_words_is_an_error_with_a_hint(two: Repo, words: list[str], said: str) -> None:
    done = two.iterdev(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "hint: " in done.stderr


def test_accept_takes_the_session_that_just_ended(repo: Repo) -> None:
    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix the first")
    repo.iterdev("run", "--pipeline", "patch", "Fix the second")

    accepted = json.loads(repo.iterdev("accept", "--json").stdout)

    assert accepted["session"].startswith("ids-fix-the-first")
    assert accepted["commit"] == repo.git("rev-parse", "main")


def test_a_finished_session_is_archived_reopened_exported_and_rolled_back_without_its_name(repo: Repo) -> None:
    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it")
    steps = (["archive"], ["reopen"], ["export", str(repo.home / "out")], ["reopen"], ["rollback", "DEV-001"])

    codes = [repo.iterdev(*words).returncode for words in steps]

    assert codes == [0, 0, 0, 0, 0]
