"""Claude Code as an agent, with a program that plays recordings of the real one; test_live.py has that one."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from iterdev.agents.claude.agent import LAST_KNOWN_GOOD, ClaudeAgent, command_line, variables
from iterdev.agents.contract import (
    TOOLS_TOKEN,
    AgentEvent,
    AgentFailure,
    Answer,
    Assignment,
    PermissionAsked,
    Permissions,
    Reply,
    Said,
    Spawn,
    Spent,
    ToolServer,
)
from iterdev.core.errors import HostError
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.results import Usage
from iterdev.host.processes.spawn import Supervisor
from iterdev.teams.development.team import DEVELOPMENT

Play = Callable[..., tuple[list[Reply], list[AgentEvent]]]

RECORDED = Path(__file__).parents[1] / "recorded"
NOW = 1_800_000_000.0

PLAYER = """\
#!{python} -IS
import json, os, sys

def receive():
    line = sys.stdin.readline()
    with open({log!r}, "a") as log:
        log.write(line)
    return line

for turn in {turns!r}:
    if not receive():
        break
    for line in turn:
        print(line.replace("WORKSPACE", os.getcwd()), flush=True)
        if '"control_request"' in line:
            receive()
receive()
{end}
"""


class Player:
    """Makes programs that play recordings, turn by turn, and records their input."""

    def __init__(self, folder: Path) -> None:
        self.program, self.log = folder / "claude", folder / "input.jsonl"

    def play(self, recording: str, end: str = "") -> ClaudeAgent:
        return self.say((RECORDED / f"claude-{recording}.jsonl").read_text(encoding="utf-8").splitlines(), end)

    def say(self, lines: list[str], end: str = "") -> ClaudeAgent:
        turns: list[list[str]] = [[]]
        for line in lines:
            turns[-1].append(line)
            if '"type":"result"' in line:
                turns.append([])
        text = PLAYER.format(python=sys.executable, turns=[turn for turn in turns if turn], log=str(self.log), end=end)
        self.program.write_text(text, encoding="utf-8")
        self.program.chmod(0o755)
        return ClaudeAgent(program=str(self.program), now=lambda: NOW)

    @property
    def received(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def player(tmp_path: Path) -> Player:
    return Player(tmp_path)


def failure(replies: list[Reply]) -> AgentFailure:
    (reply,) = replies
    assert isinstance(reply, AgentFailure), reply
    return reply


def test_two_turns_of_one_program_are_two_answers_with_their_own_costs(player: Player, play: Play) -> None:
    replies, events = play(player.play("two-turns"), "Do it.", "Go on.")

    first, second = replies
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert json.loads(first.body) == {"status": "done", "files": ["hello.txt"]}
    assert json.loads(second.body) == {"status": "resumed", "files": []}
    assert first.usage == Usage(input_tokens=2500, output_tokens=80, cost_usd=first.usage.cost_usd)
    assert second.usage == Usage(input_tokens=1400, output_tokens=10, cost_usd=second.usage.cost_usd)
    assert [first.usage.cost_usd, second.usage.cost_usd] == pytest.approx([0.00276, 0.00435])
    assert first.conversation == second.conversation != ""
    assert events == [
        Said("I will write the file."),
        Said("Write hello.txt"),
        Spent(first.usage),
        Spent(second.usage),
    ]


def test_an_allowed_permission_request_is_answered_at_once(player: Player, play: Play) -> None:
    play(player.play("two-turns"))

    asked, answer = player.received
    assert asked["message"] == {"role": "user", "content": [{"type": "text", "text": "Do it."}]}
    assert "'behavior': 'allow'" in str(answer)


def test_a_permission_is_denied_at_once_and_recorded(player: Player, play: Play, assignment: Assignment) -> None:
    reviewer = replace(assignment, role="reviewer", permissions=Permissions(write=False))

    replies, events = play(player.play("denied"), given=reviewer)

    assert isinstance(replies[0], Answer)
    assert PermissionAsked("Write hello.txt: the reviewer may not change files") in events
    assert "'behavior': 'deny'" in str(player.received[1])


def test_a_question_of_another_kind_is_refused_and_not_waited_for(player: Player, play: Play) -> None:
    question = {"type": "control_request", "request_id": "q1", "request": {"subtype": "elicitation"}}
    lines = [json.dumps(question).replace(": ", ":"), '{"type":"result","structured_output":{"id":"DEV-001"}}']

    replies, _ = play(player.say(lines))

    assert isinstance(replies[0], Answer)
    assert player.received[1]["response"] == {
        "subtype": "error",
        "request_id": "q1",
        "error": '"elicitation" is not supported',
    }


@pytest.mark.parametrize(
    ("recording", "kind", "words"),
    [
        ("unauthorized", FailureKind.not_logged_in, "Invalid API key"),
        ("limited", FailureKind.limited, "rate limit reached"),
        ("limited-for-long", FailureKind.limited, "wait for 20 s"),
        ("broken", FailureKind.overloaded, "500 boom"),
        ("too-long", FailureKind.too_long, "Prompt is too long"),
        ("prose", FailureKind.silent, "without a result"),
    ],
)
def test_a_failed_turn_is_a_failure_of_its_kind(
    player: Player, play: Play, recording: str, kind: FailureKind, words: str
) -> None:
    replies, _ = play(player.play(recording))

    found = failure(replies)
    assert found.kind is kind
    assert words in found.message
    assert found.message.startswith('The agent "claude" ')


def test_a_missing_login_is_reported_with_the_way_to_log_in(player: Player, play: Play) -> None:
    replies, _ = play(player.play("unauthorized"))

    assert failure(replies).message.endswith(f"run `{player.program}` and log in")


@pytest.mark.parametrize(("recording", "seconds"), [("limited", 1), ("limited-for-long", 20)])
def test_a_limit_is_lifted_when_the_provider_says_so(
    player: Player, play: Play, recording: str, seconds: float
) -> None:
    replies, _ = play(player.play(recording))

    assert failure(replies).reset_at == NOW + seconds


def test_a_usage_limit_of_a_subscription_is_lifted_when_its_own_event_says_so(player: Player, play: Play) -> None:
    limit = '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1800005000}}'
    refused = '{"type":"result","is_error":true,"result":"You\'ve hit your session limit","api_error_status":429}'

    replies, _ = play(player.say([limit, refused]))

    assert failure(replies).reset_at == 1800005000


def test_a_limit_without_a_time_has_none(player: Player, play: Play) -> None:
    replies, _ = play(player.say(['{"type":"result","is_error":true,"result":"usage limit reached"}']))

    assert (failure(replies).kind, failure(replies).reset_at) == (FailureKind.limited, None)


def test_the_last_object_of_the_text_counts_when_no_structured_output_was_given(player: Player, play: Play) -> None:
    replies, _ = play(player.play("json-in-prose"))

    assert isinstance(replies[0], Answer)
    assert json.loads(replies[0].body) == {"status": "x"}


def test_a_result_file_comes_before_everything_that_was_said(
    player: Player, play: Play, assignment: Assignment
) -> None:
    Path(assignment.result_path).write_text('{"from": "an earlier attempt"}', encoding="utf-8")
    agent = player.say(['{"type":"result","structured_output":{"from":"output"}}'])
    writes = f"open({assignment.result_path!r}, 'w').write('{{\"from\": \"file\"}}')"
    code = player.program.read_text(encoding="utf-8").replace(
        "    for line in turn:", f"    {writes}\n    for line in turn:"
    )
    player.program.write_text(code, encoding="utf-8")

    replies, _ = play(agent)

    assert isinstance(replies[0], Answer)
    assert replies[0].body == b'{"from": "file"}'


def test_a_result_file_of_an_earlier_attempt_is_not_taken_for_an_answer(
    player: Player, play: Play, assignment: Assignment
) -> None:
    Path(assignment.result_path).write_text('{"from": "an earlier attempt"}', encoding="utf-8")

    replies, _ = play(player.play("prose"))

    assert failure(replies).kind is FailureKind.silent


def test_a_program_that_ends_without_a_result_has_crashed_with_the_end_of_its_standard_error(
    player: Player, play: Play
) -> None:
    agent = player.say(["banner", '{"type":"system","subtype":"init"}'], end='sys.exit("unknown option")')
    code = player.program.read_text(encoding="utf-8").replace("\nreceive()\nsys.exit", "\nsys.exit")
    player.program.write_text(code, encoding="utf-8")

    replies, _ = play(agent, "Do it.", "Go on.")

    assert [reply.kind for reply in replies if isinstance(reply, AgentFailure)] == [FailureKind.crashed] * 2
    assert "exited with code 1: unknown option" in str(replies[0])


def test_a_program_that_cannot_be_started_is_a_failure_and_no_exception(play: Play, tmp_path: Path) -> None:
    replies, _ = play(ClaudeAgent(program=str(tmp_path / "nowhere")))

    assert failure(replies).kind is FailureKind.not_installed


def test_an_error_inside_of_a_conversation_comes_out_as_it_is(player: Player, assignment: Assignment) -> None:
    async def fail() -> None:
        async with Supervisor() as host:
            agent = player.play("two-turns")
            async with agent.open(assignment, spawn=host.spawn, watch=lambda _event: None) as conversation:
                await conversation.send("Do it.")
                raise HostError("The disk is full")

    with pytest.raises(HostError, match="disk"):
        anyio.run(fail)


def test_a_cancelled_turn_is_interrupted_by_the_next_one(player: Player, spawn: Spawn, assignment: Assignment) -> None:
    agent = player.say(['{"type":"system"}'])
    interrupted = '{"type":"result","is_error":true,"terminal_reason":"aborted_streaming"}'
    answered = '{"type":"result","structured_output":{"finished":true}}'
    end = f"print({interrupted!r}, flush=True); receive(); print({answered!r}, flush=True); receive()"
    player.program.write_text(player.program.read_text(encoding="utf-8") + end, encoding="utf-8")

    async def interrupt() -> Reply:
        async with agent.open(assignment, spawn=spawn, watch=lambda _event: None) as conversation:
            with anyio.move_on_after(0.2):
                await conversation.send("Do it.")
            with anyio.fail_after(30):
                return await conversation.send("Finish now.")

    reply = anyio.run(interrupt)

    assert isinstance(reply, Answer)
    assert reply.body == b'{"finished":true}'
    assert [one["type"] for one in player.received[:3]] == ["user", "control_request", "user"]


def test_the_command_line_takes_nothing_from_the_settings_of_the_user(assignment: Assignment) -> None:
    argv = command_line(ClaudeAgent(model="opus", args=("--effort", "high")), assignment)

    assert argv[argv.index("--setting-sources") + 1] == ""
    assert "--strict-mcp-config" in argv
    assert argv[argv.index("--model") + 1] == "opus"
    assert argv[-2:] == ["--effort", "high"]


def test_a_conversation_is_taken_up_again_by_its_id(assignment: Assignment) -> None:
    fresh = command_line(ClaudeAgent(), assignment)
    again = command_line(ClaudeAgent(), replace(assignment, conversation="some-id"))

    assert "--session-id" in fresh
    assert "--resume" not in fresh
    assert again[again.index("--resume") + 1] == "some-id"
    assert "--session-id" not in again


def test_the_token_of_the_tools_is_in_the_environment_and_not_in_the_arguments(assignment: Assignment) -> None:
    work = replace(assignment, tools=ToolServer(url="http://127.0.0.1:1/mcp", token="s3cret"))

    argv, env = command_line(ClaudeAgent(), work), variables(ClaudeAgent(), work)

    server = json.loads(argv[argv.index("--mcp-config") + 1])["mcpServers"]["iterdev"]
    assert server["type"] == "http"
    assert server["headers"] == {"Authorization": f"Bearer ${{{TOOLS_TOKEN}}}"}
    assert env[TOOLS_TOKEN] == "s3cret"
    assert "s3cret" not in str(argv)


def test_the_environment_is_quiet_and_the_home_private_only_if_asked_for(assignment: Assignment) -> None:
    own, private = variables(ClaudeAgent(), assignment), variables(ClaudeAgent(home="/private"), assignment)

    assert own["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == own["DISABLE_AUTOUPDATER"] == "1"
    assert own["ITERDEV_RESULT"] == assignment.result_path
    assert not {"CLAUDE_CONFIG_DIR", "XDG_RUNTIME_DIR"} & own.keys()
    assert private["CLAUDE_CONFIG_DIR"] == "/private"


def test_an_agent_with_a_temp_dir_of_its_own_is_not_found_by_others_of_the_user(assignment: Assignment) -> None:
    environment = {**assignment.environment, "TMPDIR": "/own", "XDG_RUNTIME_DIR": "/run/user/1000"}

    assert variables(ClaudeAgent(), replace(assignment, environment=environment))["XDG_RUNTIME_DIR"] == "/own"


def test_all_roles_have_the_same_tool_for_their_result(assignment: Assignment) -> None:
    schemas = [DEVELOPMENT.result_schema(role) for role in DEVELOPMENT.roles]

    lines = [command_line(ClaudeAgent(), replace(assignment, schema=schema)) for schema in schemas]

    tools = {line[line.index("--json-schema") + 1] for line in lines}
    assert [json.loads(tool)["type"] for tool in tools] == ["object"]


def versioned(folder: Path, body: str) -> ClaudeAgent:
    program = folder / "claude"
    program.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    program.chmod(0o755)
    return ClaudeAgent(program=str(program))


def test_an_installed_program_reports_its_version(tmp_path: Path) -> None:
    probe = versioned(tmp_path, f"echo '{LAST_KNOWN_GOOD} (Claude Code)'").probe()

    assert (probe.installed, probe.version, probe.problem, probe.note) == (True, LAST_KNOWN_GOOD, "", "")


@pytest.mark.parametrize(("version", "note"), [("2.1.1000", "newer than"), ("3.0.0", "newer than"), ("2.1.99", "")])
def test_a_version_newer_than_the_last_known_one_can_be_used_and_is_noted(
    tmp_path: Path, version: str, note: str
) -> None:
    probe = versioned(tmp_path, f"echo {version}").probe()

    assert probe.installed
    assert bool(probe.note) == bool(note)
    assert note in probe.note


def test_a_missing_program_comes_with_a_command_to_install_it(tmp_path: Path) -> None:
    probe = ClaudeAgent(program=str(tmp_path / "nowhere")).probe()

    assert not probe.installed
    assert "nowhere" in probe.problem
    assert probe.hint == "npm install -g @anthropic-ai/claude-code"


def test_a_program_that_does_not_report_its_version_counts_as_not_installed(tmp_path: Path) -> None:
    probe = versioned(tmp_path, "exit 3").probe()

    assert not probe.installed
    assert "does not report its version" in probe.problem


def test_the_agent_needs_what_says_who_the_user_is() -> None:
    assert {"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL"} <= set(ClaudeAgent().needs)
