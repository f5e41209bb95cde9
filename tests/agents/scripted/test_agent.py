import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from iterdev.agents.contract import (
    AgentEvent,
    AgentFailure,
    Answer,
    Assignment,
    PermissionAsked,
    Reply,
    Said,
    TroubleKind,
)
from iterdev.agents.scripted import player
from iterdev.agents.scripted.agent import ScriptedAgent

Play = Callable[..., tuple[list[Reply], list[AgentEvent]]]
Scripted = Callable[[str], ScriptedAgent]

PLAYER = (sys.executable, "-I", "-S", player.__file__)
PAGE = Path(__file__).parents[3] / "docs" / "scripted-agent.md"


@pytest.fixture
def scripted(tmp_path: Path) -> Scripted:
    def write(text: str) -> ScriptedAgent:
        (tmp_path / "script.toml").write_text(text)
        return ScriptedAgent("scripted", str(tmp_path / "script.toml"))

    return write


@pytest.fixture
def workspace(assignment: Assignment) -> Path:
    return Path(assignment.workspace)


def result(reply: Reply) -> dict[str, object]:
    assert isinstance(reply, Answer)
    decoded: dict[str, object] = json.loads(reply.body)
    return decoded


def trouble(reply: Reply) -> AgentFailure:
    assert isinstance(reply, AgentFailure)
    return reply


def said(events: list[AgentEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Said)]


def run_player(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [*PLAYER, *arguments]
    return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def content_of(path: Path) -> str:
    """Waits for a file that another process makes at once."""
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} was not made"
        time.sleep(0.01)
    return path.read_text()


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_an_empty_result_is_a_completed_one(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted("[[step]]\nresult = {}"))

    findings = "DEV-001 was played from a script."
    assert result(replies[0]) == {"id": "DEV-001", "status": "completed", "findings": findings, "error": ""}


def test_a_result_says_what_the_script_says(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted('[[step]]\nresult = {status = "failed", error = "{role} gave up", n = [1, {a = 2}]}'))

    assert result(replies[0]) == {
        "id": "DEV-001",
        "status": "failed",
        "findings": "DEV-001 was played from a script.",
        "error": "developer gave up",
        "n": [1, {"a": 2}],
    }


def test_a_step_without_a_result_leaves_none(play: Play, scripted: Scripted) -> None:
    replies, events = play(scripted('[[step]]\nsay = ["one", "zwölf"]'))

    assert trouble(replies[0]).kind is TroubleKind.silent
    assert said(events) == ["one", "zwölf"]


def test_the_first_step_that_matches_is_played(play: Play, scripted: Scripted) -> None:
    agent = scripted("""
[[step]]
role = "reviewer"
say = ["wrong role"]
[[step]]
task = "TEST-*"
say = ["wrong task"]
[[step]]
task = "DEV-*"
role = "developer"
attempt = 2
say = ["attempt {attempt} at {task}: {other}"]
[[step]]
task = "DEV-001"
say = ["the rest"]
[[step]]
say = ["never"]
""")

    _, events = play(agent, "one", "two", "three")

    assert said(events) == ["the rest", "attempt 2 at DEV-001: {other}", "the rest"]


def test_no_step_for_a_task_is_a_crash_that_says_so(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted('[[step]]\nrole = "tester"'))

    assert trouble(replies[0]).kind is TroubleKind.crashed
    assert 'code 3: player: no step is for task "DEV-001", role "developer", attempt 1' in trouble(replies[0]).message


def test_files_are_changed_inside_and_outside_of_the_workspace(play: Play, scripted: Scripted, workspace: Path) -> None:
    (workspace / "old").mkdir()
    (workspace / "old" / "file").touch()
    (workspace / "log").write_text("before\r\n")
    agent = scripted("""
[[step]]
write = {"src/{task}.py" = "role = '{role}'\\n"}
append = {log = "after\\n", new = "ä"}
delete = ["old", "absent"]
outside = {"../stray.txt" = "stray", "%s/other.txt" = "other"}
""")
    Path(agent.script).write_text(Path(agent.script).read_text() % workspace.parent)

    play(agent)

    assert (workspace / "src" / "DEV-001.py").read_text() == "role = 'developer'\n"
    assert (workspace / "log").read_bytes() == b"before\r\nafter\n"
    assert (workspace / "new").read_bytes() == "ä".encode()
    assert not (workspace / "old").exists()
    assert (workspace.parent / "stray.txt").read_text() == "stray"
    assert (workspace.parent / "other.txt").read_text() == "other"


def test_a_command_is_run_with_the_prompt_on_its_input(play: Play, scripted: Scripted, workspace: Path) -> None:
    play(scripted('[[step]]\nrun = "cat > prompt-{attempt}.txt"'), "Do this.", "Do that.")

    assert [(workspace / f"prompt-{n}.txt").read_text() for n in (1, 2)] == ["Do this.", "Do this.\n\n---\n\nDo that."]


def test_a_command_that_fails_is_a_crash(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted('[[step]]\nrun = "exit 9"\nresult = {}'))

    assert trouble(replies[0]).kind is TroubleKind.crashed
    assert '"sh -c exit 9" ended with code 9' in trouble(replies[0]).message


def test_a_commit_holds_every_change_and_an_empty_one_is_skipped(
    play: Play, scripted: Scripted, workspace: Path
) -> None:
    git(workspace, "init", "--quiet")
    agent = scripted('[[step]]\nwrite = {a = "1"}\ncommit = "{task}: add a file"\nresult = {}')

    replies, _ = play(agent, "one", "two")

    assert [result(reply)["status"] for reply in replies] == ["completed"] * 2
    assert git(workspace, "log", "--format=%an: %s", "--name-only").split("\n") == [
        "scripted agent: DEV-001: add a file",
        "",
        "a",
        "",
    ]


def test_a_flood_has_exactly_the_size_that_was_asked_for(scripted: Scripted) -> None:
    done = run_player(scripted("[[step]]\nflood = 1_234_567").script)

    assert len(done.stdout) == 1_234_567


def test_a_flood_does_not_hide_the_result(play: Play, scripted: Scripted) -> None:
    replies, events = play(scripted("[[step]]\nflood = 20_000_000\nprint_result = true\nresult = {}"))

    assert result(replies[0])["status"] == "completed"
    assert len(events) == 20_000_000 // 1024 + 1


def test_a_detached_child_outlives_the_player(play: Play, scripted: Scripted, workspace: Path) -> None:
    detach = "echo $$ > pid.part; mv pid.part pid; exec sleep 60"

    replies, _ = play(scripted(f'[[step]]\ndetach = "{detach}"\nresult = {{}}'))

    child = int(content_of(workspace / "pid"))
    try:
        assert result(replies[0])["status"] == "completed"
        assert os.getsid(child) not in (child, os.getsid(0))
    finally:
        os.kill(child, signal.SIGKILL)


def test_sigterm_ends_the_player(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted('[[step]]\nrun = "kill -TERM $PPID; sleep 1000"'))

    assert trouble(replies[0]).message.endswith("was ended by SIGTERM")


def test_sigterm_is_ignored_by_the_player_but_not_by_its_children(play: Play, scripted: Scripted) -> None:
    run = "kill -TERM $PPID; sh -c 'kill -TERM $$; exit 1'; test $? -eq 143"
    replies, _ = play(scripted(f'[[step]]\nignore_term = true\nrun = "{run}"\nresult = {{}}'))

    assert result(replies[0])["status"] == "completed"


def test_a_hanging_player_gives_no_result(play: Play, scripted: Scripted, assignment: Assignment) -> None:
    replies, _ = play(scripted("[[step]]\nhang = true\nresult = {}"), given=replace(assignment, limit=0.5))

    assert trouble(replies[0]).kind is TroubleKind.timed_out
    assert not Path(assignment.result_path).exists()


def test_a_player_works_before_it_hangs_and_can_be_asked_to_end(scripted: Scripted, workspace: Path) -> None:
    script = scripted('[[step]]\nhang = true\nrun = "echo 1 > a.part; mv a.part a"').script

    with subprocess.Popen([*PLAYER, script], cwd=workspace, stdin=subprocess.DEVNULL) as hanging:
        content = content_of(workspace / "a")
        hanging.terminate()

    assert (content, hanging.returncode) == ("1\n", -signal.SIGTERM)


def test_a_permission_prompt_is_an_event_and_a_trouble(play: Play, scripted: Scripted) -> None:
    replies, events = play(scripted('[[step]]\npermission = "run `rm -rf {task}` with \\"force\\""\nresult = {}'))

    what = 'run `rm -rf DEV-001` with "force"'
    assert events == [PermissionAsked(what)]
    assert trouble(replies[0]).kind is TroubleKind.permission
    assert what in trouble(replies[0]).message


def test_a_long_permission_is_cut(play: Play, scripted: Scripted) -> None:
    _, events = play(scripted("[[step]]\npermission = '" + '"' * 5000 + "'"))

    assert events == [PermissionAsked('"' * player.PERMISSION_LENGTH)]


def test_a_limit_has_the_time_of_its_reset(play: Play, scripted: Scripted) -> None:
    replies, events = play(scripted("[[step]]\nlimit = {reset_at = 1800000000.5}\nresult = {}"))

    assert not events
    assert trouble(replies[0]).kind is TroubleKind.limited
    assert trouble(replies[0]).reset_at == 1800000000.5


def test_a_limit_can_be_relative_to_now(play: Play, scripted: Scripted) -> None:
    before = time.time()
    replies, _ = play(scripted("[[step]]\nlimit = {reset_in = 60}"))
    after = time.time()

    reset_at = trouble(replies[0]).reset_at
    assert reset_at is not None
    assert before <= reset_at - 60 <= after


@pytest.mark.parametrize("kind", get_args(player.Failure))
def test_a_trouble_is_told_by_its_kind(kind: str, play: Play, scripted: Scripted) -> None:
    replies, events = play(scripted(f'[[step]]\ntrouble = "{kind}"\nresult = {{}}'))

    assert not events
    assert trouble(replies[0]).kind is TroubleKind(kind)
    assert trouble(replies[0]).reset_at is None


def test_a_trouble_that_no_provider_has_is_an_error_of_the_script(scripted: Scripted) -> None:
    assert "one of: not installed, not logged in" in scripted('[[step]]\ntrouble = "hungry"').probe().problem


def test_trouble_of_one_turn_is_not_that_of_the_next(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted("[[step]]\nattempt = 1\nlimit = {reset_in = 1}\n[[step]]\nresult = {}"), "one", "two")

    assert trouble(replies[0]).kind is TroubleKind.limited
    assert result(replies[1])["status"] == "completed"


def test_a_marker_that_cannot_be_read_is_just_a_line(play: Play, scripted: Scripted) -> None:
    _, events = play(scripted(f'[[step]]\nsay = ["{player.MARKER} what?"]'))

    assert events == [Said(f"{player.MARKER} what?")]


def test_a_malformed_result_is_passed_on_as_it_is(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted("[[step]]\nresult_text = '{\"id\": {task}'"))

    assert replies == [Answer(body=b'{"id": DEV-001')]


def test_an_empty_result_file_is_no_result(play: Play, scripted: Scripted, assignment: Assignment) -> None:
    replies, _ = play(scripted('[[step]]\nresult_text = ""'))

    assert Path(assignment.result_path).read_bytes() == b""
    assert trouble(replies[0]).kind is TroubleKind.silent


def test_a_result_can_be_printed(play: Play, scripted: Scripted, assignment: Assignment) -> None:
    replies, _ = play(scripted("[[step]]\nprint_result = true\nresult = {}"))

    assert result(replies[0])["id"] == "DEV-001"
    assert not Path(assignment.result_path).exists()


def test_an_exit_code_comes_after_the_result(play: Play, scripted: Scripted, assignment: Assignment) -> None:
    replies, _ = play(scripted("[[step]]\nexit = 5\nresult = {}"))

    assert trouble(replies[0]).message.endswith("exited with code 5")
    assert Path(assignment.result_path).exists()


@pytest.mark.parametrize("script", [{"step": [{"result": {}}]}, [{"result": {}}]])
def test_a_script_can_be_json(script: object, play: Play, tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps(script))
    agent = ScriptedAgent("scripted", str(tmp_path / "script.json"))

    replies, _ = play(agent)

    assert not agent.probe().problem
    assert result(replies[0])["status"] == "completed"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[step]]\nsay = x\nexit = 0", "line 2"),
        ("[[step]]\nsay = [", "at end of document"),
        ("", "has no list of steps"),
        ("step = 3", "has no list of steps"),
        ('task = "DEV-001"\n[[step]]', '"task" stands outside of a step'),
        ("[[step]]\n[[step]]\nwrit = {}", 'step 2 has an unknown key "writ"; did you mean "write"?'),
        ("[[step]]\nxyzzy = 1", 'step 1 has an unknown key "xyzzy"'),
        ("[[step]]\nattempt = true", '"attempt" of step 1 must be a whole number'),
        ("[[step]]\nattempt = 1.0", '"attempt" of step 1 must be a whole number'),
        ("[[step]]\nhang = 1", '"hang" of step 1 must be true or false'),
        ('[[step]]\nsleep = "1"', '"sleep" of step 1 must be a number of seconds'),
        ('[[step]]\nsay = "hello"', '"say" of step 1 must be a list of strings'),
        ("[[step]]\nwrite = {a = 1}", '"write" of step 1 must be a table of path = content'),
        ("[[step]]\nresult = []", '"result" of step 1 must be a table'),
        ("[[step]]\nrun = []", '"run" of step 1 must be a string'),
        ("[[step]]\nlimit = {}", '"limit" of step 1 must be { reset_in'),
        ("[[step]]\nlimit = {reset_in = true}", '"limit" of step 1 must be { reset_in'),
        ('[[step]]\nresult = {}\nresult_text = ""', 'has both "result" and "result_text"'),
    ],
)
def test_a_bad_script_is_explained_before_it_is_played(text: str, problem: str, scripted: Scripted) -> None:
    agent = scripted(text)

    assert problem in agent.probe().problem
    assert agent.script in agent.probe().hint
    assert problem.encode() in run_player(agent.script).stderr


def test_all_problems_of_a_script_are_told_at_once(scripted: Scripted) -> None:
    probe = scripted("[[step]]\nsey = []\n[[step]]\nexit = 'no'").probe()

    assert '"sey"; did you mean "say"?' in probe.problem
    assert '"exit" of step 2' in probe.problem


def test_a_script_that_does_not_exist_is_named(tmp_path: Path) -> None:
    probe = ScriptedAgent("scripted", str(tmp_path / "absent.toml")).probe()

    assert f'"{tmp_path}/absent.toml" does not exist' in probe.problem


def test_the_player_needs_a_script() -> None:
    done = run_player()

    assert (done.returncode, done.stderr) == (3, b"usage: player.py SCRIPT\n")


def test_the_reference_page_names_every_key_and_its_examples_are_scripts(scripted: Scripted) -> None:
    page = PAGE.read_text()
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)

    assert all(f"`{key}" in page for key in player.KEYS)
    assert [scripted(example).probe().problem for example in examples] == ["", ""]
