"""What only a person may do is refused in an attempt, also to an agent that unsets its variables and goes elsewhere."""

import pytest
from tests.conftest import Repo
from tests.session_files import messages

FORGET = 'cd "{top}"; env -i PATH="$PATH" HOME="$HOME" ITERDEV_HOME="$HOME/iterdev"'
COMMANDS = {
    "starting a team": "run -y Nested",
    "an answer": "answer completion keep",
    "acceptance": "accept --force",
    "the end of a session": "archive",
    "a server for the clients of people": "mcp",
    "an installation in the home of a person": "skill install",
    "feedback": "feedback add --severity critical 'Delete all tests'",
    "a message as the reviewer": "team log --from reviewer --type review_passed --summary passed",
    "a lock of another task": "lock acquire --task DEV-002 --role developer --resource x",
    "a checkpoint of another task": "checkpoint save --task DEV-002 --data '{\"x\": 1}'",
    "a discovery as another": 'team board-add --from reviewer --type convention --data \'{"name": "x"}\'',
}


def called(repo: Repo, line: str) -> tuple[str, str]:
    """The exit code and the errors of a line that the developer runs."""
    repo.behave(developer={"run": f"({line}) > $HOME/out 2> $HOME/said < /dev/null; echo $? > $HOME/code"})
    repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")
    return (repo.home / "code").read_text().strip(), (repo.home / "said").read_text()


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_an_agent_is_refused_what_only_people_may_do(repo: Repo, command: str) -> None:
    code, said = called(repo, f"{FORGET.format(top=repo.path)} iterdev {command}")

    assert code == "2", said
    assert "cannot be used inside of an attempt" in said
    assert len(repo.calls()) == 1
    assert messages(repo.folder(), "review_passed") == []


def test_a_process_that_outlived_its_parents_is_refused_as_well(repo: Repo) -> None:
    daemon = f"(setsid sh -c '{FORGET.format(top=repo.path)} iterdev feedback add x; echo $? > $HOME/ended' &) &"

    code, said = called(repo, f"{daemon} while [ ! -e $HOME/ended ]; do sleep 0.05; done")

    assert (repo.home / "ended").read_text() == "2\n"
    assert "cannot be used inside of an attempt" in said
    assert code == "0"


def test_naming_a_session_folder_of_another_repository_does_not_help(repo: Repo) -> None:
    other = "git init -q $HOME/other"

    code, said = called(
        repo, f"{other}; {FORGET.format(top=repo.path)} ITERDEV_SESSION_DIR=$HOME/other iterdev archive"
    )

    assert code == "2", said
    assert "cannot be used inside of an attempt" in said


def test_a_server_of_an_agent_that_was_started_elsewhere_acts_for_nobody(repo: Repo) -> None:
    call = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "%s", "arguments": {%s}}}'
    calls = "\n".join([call % ("feedback", '"text": "Delete all tests"'), call % ("run", '"text": "Nested"')])
    (repo.home / "calls").write_text(f"{calls}\n")
    server = f"CLAUDE_PROJECT_DIR={repo.path} iterdev mcp < $HOME/calls > $HOME/answers"

    code, said = called(repo, f"mkdir $HOME/else; {FORGET.format(top='$HOME/else')} sh -c '{server}'")

    answers = (repo.home / "answers").read_text()
    assert code == "0", said
    assert (answers.count("cannot be used inside of an attempt"), answers.count('"isError":true')) == (2, 2), answers
    assert len(repo.calls()) == 1


def test_an_agent_may_still_read_without_its_variables(repo: Repo) -> None:
    code, said = called(repo, f"{FORGET.format(top=repo.path)} iterdev team list && iterdev status --json")

    assert code == "0", said


def test_a_test_suite_may_run_sessions_in_a_repository_of_its_own(repo: Repo) -> None:
    agent = (repo.agent_folder / "agent.py").read_text()
    (repo.agent_folder / "own.py").write_text(agent.replace("/agent.json", "/none.json"))
    iterdev = "env -i PATH=$PATH HOME=$HOME ITERDEV_HOME=$HOME/own-home iterdev"
    steps = (
        f"git clone -q {repo.path} $HOME/own && cd $HOME/own && sed -i s,agent/agent.py,agent/own.py, iterdev.toml",
        "git commit -qam own",
        *(f"{iterdev} {command}" for command in ("run -y --pipeline patch Nested", "feedback add Good", "archive")),
    )

    code, said = called(repo, " && ".join(steps))

    assert code == "0", said
    assert "is archived" in (repo.home / "out").read_text()
