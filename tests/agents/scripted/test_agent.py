import json
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import convert
from msgspec.structs import replace

from iterdev.agents.contract import AgentEvent, AgentFailure, Answer, Assignment, PermissionAsked, Reply, Said
from iterdev.agents.scripted import player
from iterdev.agents.scripted.agent import ScriptedAgent, played
from iterdev.agents.scripted.script import Step
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.results import Usage

Play = Callable[..., tuple[list[Reply], list[AgentEvent]]]
Scripted = Callable[[str], ScriptedAgent]

PLAYER = (sys.executable, "-I", "-S", player.__file__, "0")


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


def failure(reply: Reply) -> AgentFailure:
    assert isinstance(reply, AgentFailure)
    return reply


def said(events: list[AgentEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, Said)]


def steps(text: str) -> bytes:
    """The steps of the first rule as the player reads them."""
    table = tomllib.loads(text)["rule"][0]
    data = json.dumps([played(convert(table, Step), "")]).encode()
    return b"%d\n%s" % (len(data), data)


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
    replies, _ = play(scripted("[[rule]]\nresult = {}"))

    findings = "DEV-001 was played from a script."
    assert result(replies[0]) == {"id": "DEV-001", "status": "completed", "findings": findings, "error": ""}


def test_a_result_says_what_the_script_says(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted('[[rule]]\nresult = {status = "failed", error = "{role} gave up", n = [1, {a = 2}]}'))

    assert result(replies[0]) == {
        "id": "DEV-001",
        "status": "failed",
        "findings": "DEV-001 was played from a script.",
        "error": "developer gave up",
        "n": [1, {"a": 2}],
    }


def test_a_step_without_a_result_leaves_none(play: Play, scripted: Scripted) -> None:
    replies, events = play(scripted('[[rule]]\nsay = ["one", "zwölf"]'))

    assert failure(replies[0]).kind is FailureKind.silent
    assert said(events) == ["one", "zwölf"]


def test_the_first_step_that_matches_is_played(play: Play, scripted: Scripted) -> None:
    agent = scripted("""
[[rule]]
role = "reviewer"
say = ["wrong role"]
[[rule]]
task = "TEST-*"
say = ["wrong task"]
[[rule]]
task = "DEV-*"
role = "developer"
attempt = 2
say = ["attempt {attempt} at {task}: {other}"]
[[rule]]
task = "DEV-001"
say = ["the rest"]
[[rule]]
say = ["never"]
""")

    _, events = play(agent, "one", "two", "three")

    assert said(events) == ["the rest", "attempt 2 at DEV-001: {other}", "the rest"]


def test_no_rule_for_a_task_is_a_failure_that_says_so(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted('[[rule]]\nrole = "tester"'))

    assert failure(replies[0]).kind is FailureKind.crashed
    assert 'no rule in its script for task "DEV-001", role "developer", attempt 1' in failure(replies[0]).message


def test_the_steps_of_a_rule_are_played_in_order_up_to_the_one_that_ends_the_turn(
    play: Play, scripted: Scripted, workspace: Path
) -> None:
    agent = scripted("""
[[rule]]
attempt = 1
step = [{ say = "one", write = { a = "1" } }, { append = { a = "2" }, exit = 4 }, { say = "never" }]
[[rule]]
[[rule.step]]
say = "two"
[[rule.step]]
result = { findings = "in {cwd}" }
""")

    replies, events = play(agent, "one", "two")

    assert failure(replies[0]).message.endswith("exited with code 4")
    assert said(events) == ["one", "two"]
    assert (workspace / "a").read_text() == "12"
    assert result(replies[1])["findings"] == f"in {workspace}"


def test_a_rule_can_be_chosen_by_the_prompt(play: Play, scripted: Scripted) -> None:
    agent = scripted("""
[[rule]]
name = "named"
say = "by name"
[[rule]]
match = 'the (?P<fruit>\\w+) tree'
say = "by {fruit}"
""")

    _, events = play(agent, "Water the plum tree.")
    _, more = play(agent, "Do it. [[scenario:named]]")

    assert (said(events), said(more)) == (["by plum"], ["by name"])


def test_files_are_changed_inside_and_outside_of_the_workspace(play: Play, scripted: Scripted, workspace: Path) -> None:
    (workspace / "old").mkdir()
    (workspace / "old" / "file").touch()
    (workspace / "log").write_text("before\r\n")
    agent = scripted("""
[[rule]]
write = {"src/{task}.py" = "role = '{role}'\\n", "../stray.txt" = "stray", "%s/other.txt" = "other"}
append = {log = "after\\n", new = "ä"}
delete = ["old", "absent"]
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
    play(scripted('[[rule]]\nrun = "cat > prompt-{attempt}.txt"'), "Do this.", "Do that.")

    assert [(workspace / f"prompt-{n}.txt").read_text() for n in (1, 2)] == ["Do this.", "Do this.\n\n---\n\nDo that."]


def test_a_command_that_fails_is_a_crash(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted('[[rule]]\nrun = "exit 9"\nresult = {}'))

    assert failure(replies[0]).kind is FailureKind.crashed
    assert '"sh -c exit 9" ended with code 9' in failure(replies[0]).message


def test_a_commit_holds_every_change_and_an_empty_one_is_skipped(
    play: Play, scripted: Scripted, workspace: Path
) -> None:
    git(workspace, "init", "--quiet")
    agent = scripted('[[rule]]\nwrite = {a = "1"}\ncommit = "{task}: add a file"\nresult = {}')

    replies, _ = play(agent, "one", "two")

    assert [result(reply)["status"] for reply in replies] == ["completed"] * 2
    assert git(workspace, "log", "--format=%an: %s", "--name-only").split("\n") == [
        "scripted agent: DEV-001: add a file",
        "",
        "a",
        "",
    ]


def test_a_flood_has_exactly_the_size_that_was_asked_for() -> None:
    done = subprocess.run(PLAYER, input=steps("[[rule]]\nflood = 1_234_567"), capture_output=True, check=True)

    assert len(done.stdout) == 1_234_567


def test_a_flood_does_not_hide_the_result(play: Play, scripted: Scripted) -> None:
    replies, events = play(scripted("[[rule]]\nflood = 20_000_000\nprint_result = true\nresult = {}"))

    assert result(replies[0])["status"] == "completed"
    assert len(events) == 20_000_000 // 1024 + 1


def test_a_detached_child_outlives_the_player(play: Play, scripted: Scripted, workspace: Path) -> None:
    detach = "echo $$ > pid.part; mv pid.part pid; exec sleep 60"

    replies, _ = play(scripted(f'[[rule]]\ndetach = "{detach}"\nresult = {{}}'))

    child = int(content_of(workspace / "pid"))
    try:
        assert result(replies[0])["status"] == "completed"
        assert os.getsid(child) not in (child, os.getsid(0))
    finally:
        os.kill(child, signal.SIGKILL)


def test_sigterm_ends_the_player(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted('[[rule]]\nrun = "kill -TERM $PPID; sleep 1000"'))

    assert failure(replies[0]).message.endswith("was ended by SIGTERM")


def test_sigterm_is_ignored_by_the_player_but_not_by_its_children(play: Play, scripted: Scripted) -> None:
    run = "kill -TERM $PPID; sh -c 'kill -TERM $$; exit 1'; test $? -eq 143"
    replies, _ = play(scripted(f'[[rule]]\nignore_term = true\nrun = "{run}"\nresult = {{}}'))

    assert result(replies[0])["status"] == "completed"


def test_a_hanging_player_gives_no_result(play: Play, scripted: Scripted, assignment: Assignment) -> None:
    replies, _ = play(scripted("[[rule]]\nhang = true\nresult = {}"), given=replace(assignment, limit=0.5))

    assert failure(replies[0]).kind is FailureKind.timed_out
    assert not Path(assignment.result_path).exists()


def test_a_player_works_before_it_hangs_and_can_be_asked_to_end(workspace: Path) -> None:
    data = steps('[[rule]]\nhang = true\nrun = "echo 1 > a.part; mv a.part a"')

    with subprocess.Popen(PLAYER, cwd=workspace, stdin=subprocess.PIPE) as hanging:
        assert hanging.stdin
        hanging.stdin.write(data)
        hanging.stdin.flush()
        content = content_of(workspace / "a")
        hanging.terminate()

    assert (content, hanging.returncode) == ("1\n", -signal.SIGTERM)


def test_a_permission_prompt_is_an_event_and_a_failure(play: Play, scripted: Scripted) -> None:
    replies, events = play(scripted('[[rule]]\npermission = "run `rm -rf {task}` with \\"force\\""\nresult = {}'))

    what = 'run `rm -rf DEV-001` with "force"'
    assert events == [PermissionAsked(what)]
    assert failure(replies[0]).kind is FailureKind.permission
    assert what in failure(replies[0]).message


def test_a_limit_has_the_time_of_its_reset(play: Play, scripted: Scripted) -> None:
    agent = scripted('[[rule]]\nfail = {kind = "rate limited", reset_in = 60}\nresult = {}')

    replies, events = play(replace(agent, now=lambda: 1000.0))

    assert not events
    assert failure(replies[0]).kind is FailureKind.limited
    assert failure(replies[0]).reset_at == 1060.0


@pytest.mark.parametrize(
    "kind", ["not installed", "not logged in", "rate limited", "overloaded", "context too long", "budget used up"]
)
def test_a_failure_is_reported_by_its_kind(kind: str, play: Play, scripted: Scripted) -> None:
    replies, events = play(scripted(f'[[rule]]\nfail = {{ kind = "{kind}" }}\nresult = {{}}'))

    assert not events
    assert failure(replies[0]).kind is FailureKind(kind)
    assert failure(replies[0]).reset_at is None


def test_an_http_status_is_a_failure_too(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted("[[rule]]\nfail = { status = 429, message = 'Retry later.' }"))

    assert failure(replies[0]).kind is FailureKind.limited
    assert failure(replies[0]).message.endswith("Retry later.")


def test_a_failure_can_be_over_after_some_attempts(play: Play, scripted: Scripted) -> None:
    agent = scripted('[[rule]]\nfail = { kind = "overloaded", times = 1 }\nresult = {}')

    replies, _ = play(agent, "one", "two")

    assert failure(replies[0]).kind is FailureKind.overloaded
    assert result(replies[1])["status"] == "completed"


def test_a_step_that_never_came_to_its_failure_has_crashed(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted('[[rule]]\nrun = "exit 9"\nfail = { kind = "overloaded" }'))

    assert failure(replies[0]).kind is FailureKind.crashed


def test_the_usage_of_a_step_is_reported_with_its_result(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted("[[rule]]\nusage = { input = 7, output = 5 }\nresult = {}"))

    assert replies[0].usage == Usage(input_tokens=7, output_tokens=5)


def test_a_malformed_result_is_passed_on_as_it_is(play: Play, scripted: Scripted) -> None:
    replies, _ = play(scripted("[[rule]]\nresult_text = '{\"id\": {task}'"))

    assert replies == [Answer(body=b'{"id": DEV-001')]


def test_an_empty_result_file_is_no_result(play: Play, scripted: Scripted, assignment: Assignment) -> None:
    replies, _ = play(scripted('[[rule]]\nresult_text = ""'))

    assert Path(assignment.result_path).read_bytes() == b""
    assert failure(replies[0]).kind is FailureKind.silent


def test_a_result_can_be_printed(play: Play, scripted: Scripted, assignment: Assignment) -> None:
    replies, _ = play(scripted("[[rule]]\nprint_result = true\nresult = {}"))

    assert result(replies[0])["id"] == "DEV-001"
    assert not Path(assignment.result_path).exists()


def test_an_exit_code_comes_after_the_result(play: Play, scripted: Scripted, assignment: Assignment) -> None:
    replies, _ = play(scripted("[[rule]]\nexit = 5\nresult = {}"))

    assert failure(replies[0]).message.endswith("exited with code 5")
    assert Path(assignment.result_path).exists()


def test_a_script_can_be_json(play: Play, tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps({"rule": [{"result": {}}]}))
    agent = ScriptedAgent("scripted", str(tmp_path / "script.json"))

    replies, _ = play(agent)

    assert not agent.probe().problem
    assert result(replies[0])["status"] == "completed"


def test_a_script_with_errors_is_explained_before_it_is_played(play: Play, scripted: Scripted) -> None:
    agent = scripted("[[rule]]\nsey = []\n[[rule]]\nexit = 'no'")

    replies, _ = play(agent)

    assert '"sey" (did you mean "say"?)' in agent.probe().problem
    assert agent.script in agent.probe().hint
    assert failure(replies[0]).message.endswith(agent.probe().problem)
