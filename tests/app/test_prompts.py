"""What agents are told in a whole session, with facts that only git and the files know."""

import re

import pytest
from tests.app.conftest import Team
from tests.conftest import Repo

from iterdev.app import inspect
from iterdev.core.errors import UserError
from iterdev.core.prompts import RESULT

pytestmark = pytest.mark.elsewhere

SUBTRACTS = {"write": {"calc.py": "def add(a, b):\n    return a - b\n"}}
CRITICAL = {
    "severity": "critical",
    "file": "calc.py",
    "line": 2,
    "dimension": "correctness",
    "description": "subtracts",
}


@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_every_agent_is_told_the_request_the_conventions_of_the_base_and_the_test_command(
    repo: Repo, team: Team, engine: str
) -> None:
    repo.write("CONTRIBUTING.md", "Use tabs.\n")
    repo.write("app/AGENTS.md", "No globals.\n")
    repo.commit()
    repo.write("CLAUDE.md", "not committed")
    repo.behave(developer={"write": {"GEMINI.md": "by an agent"}})

    run = team.run("Add a greeting\n\nIn two languages.", pipeline="sprint", engine=engine)

    assert run.succeeded, run.lines
    for task in ("DESIGN-001", "DEV-001", "REVIEW-001"):
        (prompt,) = team.prompts(task)
        assert "```\nAdd a greeting\n\nIn two languages.\n```" in prompt
        assert "- CONTRIBUTING.md\n- app/AGENTS.md\n\n" in prompt
        assert "- CLAUDE.md" not in prompt
        assert "- GEMINI.md" not in prompt
        assert "Command: `true`." in prompt


def test_a_tester_is_told_what_was_asked_for_and_what_has_to_hold(repo: Repo, team: Team) -> None:
    team.use_tests("test ! -e broken || test -e fixed")
    repo.behave(developer={"write": {"broken": ""}}, tester={"run": "rm broken"})

    run = team.run("Add a greeting in two languages", pipeline="sprint")

    (prompt,) = team.prompts("VERIFY-001")
    assert run.succeeded, run.lines
    assert "```\nAdd a greeting in two languages\n```" in prompt
    assert "  - it is there" in prompt
    assert "The tests fail." in prompt


def test_a_reviewer_and_a_fixer_see_the_change_and_a_long_one_as_its_summary(repo: Repo, team: Team) -> None:
    repo.write("calc.py", "def add(a, b):\n    return a + b\n")
    repo.commit()
    long = {"write": {"calc.py": "x = 1\n" * 20_000}}
    repo.behave(**{"DEV-001": SUBTRACTS, "REVIEW-001": {"score": 4, "issues": [CRITICAL]}, "DEV-fix-1": long})

    run = team.run(pipeline="sprint")

    first, fix, again = (team.prompts(task)[0] for task in ("REVIEW-001", "DEV-fix-1", "REVIEW-002"))
    assert run.succeeded, run.lines
    assert "-    return a + b\n+    return a - b\n" in first
    assert "-    return a + b\n+    return a - b\n" in fix
    assert "+x = 1" not in again
    assert "1 file changed, 20000 insertions(+), 2 deletions(-)" in again


TWO_CHANGES = (
    "id,description,deps\nDEV-001,One,\nDEV-002,Two,\nREVIEW-001,See one,DEV-001\nREVIEW-002,See two,DEV-002\n"
)


def test_a_reviewer_sees_what_the_tasks_before_it_changed_however_many_others_there_are(repo: Repo, team: Team) -> None:
    repo.behave(**{"DEV-001": {"write": {"one.py": "x = 1\n"}}, "DEV-002": {"write": {"two.py": "y = 2\n"}}})

    run = team.run(table=TWO_CHANGES, concurrency=1)

    first, second = (team.prompts(task)[0] for task in ("REVIEW-001", "REVIEW-002"))
    assert run.succeeded, run.lines
    assert ("+++ b/one.py" in first, "+++ b/two.py" in first) == (True, False)
    assert "It names 1 more file, of tasks that this one does not wait for." in first
    assert ("+++ b/one.py" in second, "+++ b/two.py" in second) == (False, True)


@pytest.mark.local("its agent plays a person who writes to the session folder")
def test_conventions_of_the_board_and_lines_that_a_person_wrote_reach_wisdom_and_prompts(
    repo: Repo, team: Team
) -> None:
    board = '{"type": "convention", "data": {"name": "tabs", "description": "indent with tabs"}}'
    key = "ghp_" + "a1" * 18
    by_hand = f"echo '- ask before deleting {key}' >> $ITERDEV_SESSION_DIR/wisdom/decisions.md"
    repo.behave(**{"DESIGN-001": {"run": f"echo '{board}' >> $ITERDEV_SESSION_DIR/discoveries.ndjson; {by_hand}"}})

    run = team.run(pipeline="sprint")

    conventions = (repo.folder() / "wisdom" / "conventions.md").read_text(encoding="utf-8")
    (prompt,) = team.prompts("DEV-001")
    assert run.succeeded, run.lines
    assert "- conventions: tabs: indent with tabs\n" in prompt
    assert "- decisions: ask before deleting " in prompt
    assert not any(key in prompt or key in note.text for note in team.repository.state(team.session).wisdom.notes)
    assert "- tabs: indent with tabs (W-" in conventions


FIRST_TEST = "import unittest\nimport greet\nclass T(unittest.TestCase):\n  def test_it(self): greet.hello()\n"


def test_a_developer_in_a_repository_without_tests_is_asked_to_add_some_and_these_verify_the_change(
    repo: Repo, team: Team
) -> None:
    team.use_tests("")
    repo.behave(developer={"write": {"greet.py": "def hello(): pass\n", "test_greet.py": FIRST_TEST}})

    run = team.run(pipeline="patch")

    (prompt,) = team.prompts("DEV-001")
    assert "## Tests\nThere are no tests here that iterdev can find" in prompt
    assert "Add tests of your change with it" in prompt
    assert run.succeeded, run.lines
    assert run.view.team.reservations == ("nothing was verified before the change, which brought the first tests",)


def test_a_developer_is_told_how_the_tests_that_were_found_are_run(repo: Repo, team: Team) -> None:
    team.use_tests("")
    repo.write("greet.py", "def hello(): pass\n")
    repo.write("test_greet.py", FIRST_TEST)
    repo.commit("tests")

    run = team.run(pipeline="patch")

    (prompt,) = team.prompts("DEV-001")
    assert run.succeeded, run.lines
    assert "unittest" in prompt.partition("## Tests\nCommand: `")[2].partition("`")[0]
    assert "There are no tests here" not in prompt


@pytest.mark.local("compares the path of the session folder, which is another one on another host")
def test_what_an_agent_was_asked_can_be_made_again_after_the_session(repo: Repo, team: Team) -> None:
    repo.write("calc.py", "def add(a, b):\n    return a + b\n")
    repo.commit()
    repo.behave(**{"DEV-001": SUBTRACTS, "REVIEW-001": {"score": 4, "issues": [CRITICAL]}})
    team.run(pipeline="sprint")

    for task in ("DESIGN-001", "DEV-001", "REVIEW-001", "DEV-fix-1"):
        told, made = team.prompts(task)[0], inspect.prompt(team.repository, team.session, task, 1)

        # The board is as it is now, and the path of the result was that of the workspace.
        parts = [re.split(r"\n\n## (?:Discoveries on the board|In the end)\n", text) for text in (told, made)]
        assert parts[0][0] == parts[1][0]
        assert RESULT in parts[1][-1]
    with pytest.raises(UserError, match='There is no attempt 7 at "DEV-001"'):
        inspect.prompt(team.repository, team.session, "DEV-001", 7)
