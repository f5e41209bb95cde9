"""Questions: without a terminal they wait for an answer from anywhere; in a terminal they are asked there."""

import re

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Terminal, typed
from tests.session_files import left_behind, rows, statuses

ESCAPE = "\x1b"


def commands_in(text: str, word: str) -> list[str]:
    """The commands that a text offers to paste."""
    return re.findall(rf"^\s*(?:Then: |Continue with: )?(iterdev {word} .*)$", text, re.MULTILINE)


@pytest.mark.hosts
@pytest.mark.requirement("R16", "R17")
def test_without_a_terminal_the_questions_wait_and_the_printed_commands_answer_them(repo: Repo) -> None:
    first = repo.iterdev("run", "Fix a greeting")
    (approve_pipeline,) = commands_in(first.stdout, "answer")
    answered = typed(repo, approve_pipeline)
    (go_on,) = commands_in(first.stdout, "resume")
    second = typed(repo, go_on)
    approve_plan, _ = commands_in(second.stdout, "answer")
    typed(repo, approve_plan)
    third = typed(repo, go_on)

    assert first.returncode == 5
    assert '"Fix a greeting"' in first.stdout
    assert re.search("patch pipeline is recommended .*complexity Low; roles: developer, tester", first.stdout)
    assert answered.returncode == 0
    assert second.returncode == 5
    assert re.search(r"1 +DEV-001 +developer +mine +csv-wave +Fix a greeting\n +2 +VERIFY-001", second.stdout)
    assert third.returncode == 0, third.stderr
    assert statuses(repo.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed"}
    assert left_behind(repo) == []


@pytest.mark.requirement("R16")
def test_another_pipeline_can_be_chosen(repo: Repo) -> None:
    repo.iterdev("run", "Fix a greeting")
    session = repo.folder().name

    answered = repo.iterdev("answer", session, "pipeline", "sprint")
    repo.iterdev("resume")

    assert answered.returncode == 0
    assert list(rows(repo.folder())) == ["DESIGN-001", "DEV-001", "VERIFY-001", "REVIEW-001"]


@pytest.mark.requirement("R17")
def test_a_rejected_plan_runs_nothing(repo: Repo) -> None:
    repo.iterdev("run", "--pipeline", "patch", "Fix a greeting")

    repo.iterdev("answer", repo.folder().name, "plan", "reject")
    ended = repo.iterdev("resume")

    assert ended.returncode == 1
    assert "reject" in ended.stdout
    assert repo.calls() == []
    assert left_behind(repo) == []


@pytest.mark.requirement("R1")
def test_resume_with_yes_answers_what_is_open_with_the_defaults(repo: Repo) -> None:
    repo.iterdev("run", "Fix a greeting")

    resumed = repo.iterdev("resume", "-y")

    assert resumed.returncode == 0, resumed.stderr
    assert statuses(repo.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed"}


def test_a_wrong_answer_is_refused_and_the_right_ones_are_listed(repo: Repo) -> None:
    repo.iterdev("run", "Fix a greeting")
    session = repo.folder().name

    no_gate = repo.iterdev("answer", session, "colour", "blue")
    no_choice = repo.iterdev("answer", session, "pipeline", "waterfall")
    no_session = repo.iterdev("answer", "ids-nothing", "pipeline", "approve")

    assert (no_gate.returncode, no_choice.returncode, no_session.returncode) == (2, 2, 2)
    assert '"colour"' in no_gate.stderr
    assert "hint: open questions: pipeline" in no_gate.stderr
    assert '"waterfall"' in no_choice.stderr
    assert "approve, patch, sprint, multi-sprint" in no_choice.stderr
    assert '"ids-nothing"' in no_session.stderr
    assert session in no_session.stderr


def test_a_question_is_answered_once(repo: Repo) -> None:
    repo.iterdev("run", "Fix a greeting")
    session = repo.folder().name
    repo.iterdev("answer", session, "pipeline", "approve")

    again = repo.iterdev("answer", session, "pipeline", "sprint")

    assert again.returncode == 2
    assert '"pipeline"' in again.stderr


@pytest.mark.requirement("R58")
@pytest.mark.parametrize(("choice", "code"), [("retry", 0), ("abort", 1)])
def test_when_every_agent_of_a_wave_failed_the_user_may_try_again_or_go_on(repo: Repo, choice: str, code: int) -> None:
    repo.behave(**{"DEV-001#1": {"exit": 1}})
    repo.iterdev("run", "--pipeline", "patch", "Fix a greeting")
    session = repo.folder().name
    repo.iterdev("answer", session, "plan", "approve")

    failed = repo.iterdev("resume")
    (line,) = [line for line in commands_in(failed.stdout, "answer") if line.endswith(choice)]
    typed(repo, line)
    ended = repo.iterdev("resume")

    assert failed.returncode == 5
    assert "DEV-001" in failed.stdout
    assert ended.returncode == code
    assert statuses(repo.folder())["VERIFY-001"] == ("completed" if choice == "retry" else "skipped")


def test_status_and_sessions_show_that_a_question_is_open(repo: Repo) -> None:
    repo.iterdev("run", "Fix a greeting")

    status = repo.iterdev("status").stdout

    assert commands_in(status, "answer") == [f"iterdev answer {repo.folder().name} pipeline approve"]
    assert re.search("^State: waiting", status, re.MULTILINE)


@pytest.mark.requirement("R16", "R17")
def test_in_a_terminal_the_questions_are_asked_and_the_run_is_shown_live(repo: Repo, terminal: Terminal) -> None:
    wait = f"until test -e {repo.home}/go; do sleep 0.05; done"
    repo.behave(developer={"write": {"greeting.txt": "hello\n"}, "run": f"echo reading the code; {wait}"})

    terminal.type("iterdev run 'Fix a greeting'; echo exit=$?")
    pipeline = terminal.until("patch pipeline is recommended", "4. multi-sprint", "pipeline [approve]:")
    terminal.type("waterfall")
    again = terminal.until('"waterfall" is not one of approve, patch, sprint, multi-sprint')
    terminal.type("3")
    plan = terminal.until("Run these tasks?", "plan [approve]:")
    terminal.type("")
    live = terminal.until("DEV-001", "reading the code")
    (repo.home / "go").touch()
    terminal.until("completion [accept]:")
    terminal.type("archive")
    ended = terminal.until("exit=0")

    assert "1. approve" in pipeline
    assert again.count("pipeline [approve]:") == 2
    assert re.search("1 +DESIGN-001 +architect +mine", plan)
    assert re.search(r"sprint 1/4 .*\n 1 ✓ DESIGN-001 architect .*\n 2 ▸ DEV-001 +developer .*reading the code", live)
    assert re.search(r" 3 · VERIFY-001 tester", live)
    assert re.search(r" 3 ✓ VERIFY-001 tester .*\n +✓ REVIEW-001 reviewer .*score 9", ended)
    assert "4 completed, 0 failed, 0 skipped" in ended
    assert ESCAPE in terminal.screen("-e")


def test_in_a_terminal_a_question_may_be_answered_from_elsewhere(repo: Repo, terminal: Terminal) -> None:
    terminal.type("iterdev run --pipeline patch 'Fix a greeting'; echo exit=$?")
    terminal.until("plan [approve]:")

    answered = repo.iterdev("answer", "greeting", "plan", "approve")

    assert answered.returncode == 0, answered.stderr
    terminal.until("2 completed, 0 failed, 0 skipped", "completion [accept]:")
    terminal.press("C-d")
    terminal.until("exit=0")


def test_the_end_of_the_input_is_no_answer(repo: Repo, terminal: Terminal) -> None:
    terminal.type("iterdev run 'Fix a greeting'; echo exit=$?")
    terminal.until("pipeline [approve]:")

    terminal.press("C-d")

    screen = terminal.until("exit=5")
    assert commands_in(screen, "resume") == [f"iterdev resume {repo.folder().name}"]


@pytest.mark.parametrize("variable", ["NO_COLOR", "CI"])
def test_in_a_terminal_plain_lines_can_be_asked_for(repo: Repo, terminal: Terminal, variable: str) -> None:
    terminal.type(f"{variable}=1 script -qec \"iterdev run -y 'Fix a greeting'\" recorded >/dev/null; echo exit=$?")

    terminal.until("exit=0")

    recorded = (repo.path / "recorded").read_text(encoding="utf-8")
    assert "DEV-001 completed" in recorded
    assert ESCAPE not in recorded


def test_a_pipe_gets_plain_lines(repo: Repo) -> None:
    run = repo.iterdev("run", "-y", "Fix a greeting", TERM="xterm-256color")

    assert "DEV-001 completed" in run.stdout
    assert ESCAPE not in run.stdout + run.stderr


def test_in_a_terminal_the_plan_is_edited_until_it_is_right(repo: Repo, terminal: Terminal) -> None:
    editor = repo.home / "editor"
    editor.write_text(
        "#!/bin/sh\n"
        "if test -e $HOME/again; then sed -i 's/plumber/developer/' \"$1\"\n"
        'else sed -i \'s/"developer"/"plumber"/; 2s/Fix a greeting/Greet/\' "$1"; touch $HOME/again; fi\n'
    )
    editor.chmod(0o755)
    terminal.type(f"VISUAL={editor} iterdev run --pipeline patch 'Fix a greeting'; echo exit=$?")
    terminal.until("2. edit:", "plan [approve]:")

    terminal.type("e")
    wrong = terminal.until('role is "plumber"', "kept for the next one")
    terminal.type("edit")
    right = terminal.until("csv-wave  Greet")
    terminal.type("y")
    terminal.until("completion [accept]:")
    terminal.type("q")
    terminal.until("exit=0")

    assert "tasks.edited.csv" in wrong.replace("\n", "")
    assert "Run these tasks?" in right
    assert repo.git("log", "-1", "--format=%s", f"iterdev/{repo.folder().name}").startswith("DEV-001: Greet")


def test_in_a_terminal_the_change_is_seen_and_accepted_at_the_end(repo: Repo, terminal: Terminal) -> None:
    repo.git("config", "core.pager", "sed 's/^/paged /'")
    terminal.type("iterdev run --pipeline patch 'Fix a greeting'; echo exit=$?")
    terminal.until("plan [approve]:")
    terminal.type("yes")
    terminal.until("completion [accept]:")

    terminal.type("diff")
    shown = terminal.until("paged", "+DEV-001 attempt 1")
    terminal.type("accept")
    terminal.until("main is now at", "completion [archive]:")
    terminal.type("archive")
    terminal.until("exit=0")

    assert "DEV-001.txt" in shown
    assert (repo.path / "DEV-001.txt").exists()


def test_a_question_stays_open_if_the_user_wants_to_answer_later(repo: Repo, terminal: Terminal) -> None:
    terminal.type("iterdev run --pipeline patch 'Fix a greeting'; echo exit=$?")
    terminal.until("plan [approve]:")

    terminal.type("q")

    terminal.until("exit=5")
    assert repo.calls() == []


def test_yes_and_no_answer_a_question_from_elsewhere(repo: Repo) -> None:
    repo.iterdev("run", "--pipeline", "patch", "Fix a greeting")

    answered = repo.iterdev("answer", repo.folder().name, "plan", "no")
    ended = repo.iterdev("resume")

    assert answered.returncode == 0, answered.stderr
    assert "the plan was rejected" in ended.stdout
