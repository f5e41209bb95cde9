"""Codex as an agent, with a program that plays recordings of the real one; test_live.py has that one."""

import json
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from iterdev.agents.codex.agent import LAST_KNOWN_GOOD, CodexAgent
from iterdev.agents.codex.protocol import failure_kind
from iterdev.agents.common.streams import LINE_LENGTH
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
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.results import Usage, decode
from iterdev.core.types import TaskId
from iterdev.teams.development.results import Development
from iterdev.teams.development.team import DEVELOPMENT

Play = Callable[..., tuple[list[Reply], list[AgentEvent]]]

RECORDED = Path(__file__).parents[1] / "recorded"
THREAD = "01a1e1d5-9925-7753-b802-b17f191e2fcc"
NOW = 1_800_000_000.0

PLAYER = """\
#!{python} -IS
import json, os, sys, time
if "--version" in sys.argv:
    print("codex-cli {version}")
    raise SystemExit
prompt = sys.stdin.read()
number = len(open({log!r}).readlines())
with open({log!r}, "a") as log:
    log.write(json.dumps([sys.argv[1:], prompt, dict(os.environ)]) + "\\n")
lines, complaint, code = {turns!r}[number]
for line in lines:
    print(line.replace("WORKSPACE", os.getcwd()), flush=True)
print(complaint, end="", file=sys.stderr, flush=True)
if code == "hang":
    time.sleep(600)
raise SystemExit(code)
"""


class Call:
    """The arguments, environment and input of one start of the program."""

    def __init__(self, line: str) -> None:
        self.argv, self.prompt, self.env = json.loads(line)

    @property
    def settings(self) -> dict[str, str]:
        words = zip(self.argv, self.argv[1:], strict=False)
        return dict(value.split("=", 1) for flag, value in words if flag == "-c")


class Player:
    """Makes a program that plays one recording per start, and records its starts."""

    def __init__(self, folder: Path) -> None:
        self.program, self.log = folder / "codex", folder / "input.jsonl"
        self.turns: list[tuple[list[str], str, int | str]] = []
        self.log.touch()

    def play(self, *recordings: str) -> "Player":
        for recording in recordings:
            self.say((RECORDED / f"codex-{recording}.jsonl").read_text(encoding="utf-8").splitlines())
        return self

    def say(self, lines: list[str], complaint: str = "", code: int | str = 0) -> "Player":
        self.turns.append((lines, complaint, code))
        return self

    def agent(self, version: str = LAST_KNOWN_GOOD, **fields: object) -> CodexAgent:
        text = PLAYER.format(python=sys.executable, log=str(self.log), turns=self.turns, version=version)
        self.program.write_text(text, encoding="utf-8")
        self.program.chmod(0o755)
        return CodexAgent(**{"program": str(self.program), "now": lambda: NOW, **fields})  # type: ignore[arg-type]

    @property
    def received(self) -> list[Call]:
        return [Call(line) for line in self.log.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def player(tmp_path: Path) -> Player:
    return Player(tmp_path)


def answer(replies: list[Reply]) -> Answer:
    (reply,) = replies
    assert isinstance(reply, Answer)
    return reply


def failure(replies: list[Reply]) -> AgentFailure:
    (reply,) = replies
    assert isinstance(reply, AgentFailure)
    return reply


def test_a_program_that_is_not_there_is_explained_with_a_command_to_paste() -> None:
    probe = CodexAgent(program="no-such-codex").probe()

    assert not probe.installed
    assert '"no-such-codex"' in probe.problem
    assert probe.hint == "npm install -g @openai/codex"


def test_a_program_that_does_not_report_its_version_is_explained() -> None:
    probe = CodexAgent(program="false").probe()

    assert not probe.installed
    assert '"false"' in probe.problem


@pytest.mark.parametrize(
    ("version", "note"),
    [
        ("0.99.9", ""),
        (LAST_KNOWN_GOOD, ""),
        ("0.167.0", f"version 0.167.0 is newer than {LAST_KNOWN_GOOD}, the last one known to work"),
    ],
)
def test_a_version_is_reported_and_noted_when_it_is_newer_than_known(player: Player, version: str, note: str) -> None:
    probe = player.agent(version).probe()

    assert probe.installed
    assert (probe.version, probe.note) == (version, note)


def test_events_are_reported_as_they_happen_and_the_answer_decodes(play: Play, player: Player) -> None:
    replies, events = play(player.play("hello").agent())

    found = answer(replies)
    assert decode(found.body, kind=Development, task=TaskId("DEV-001")).findings == "done"
    assert found.usage == Usage(input_tokens=2500, output_tokens=80)
    assert events[:2] == [Said("I will write the file."), Said("add hello.txt")]
    assert events[-1] == Spent(found.usage)


def test_a_command_is_reported_without_the_shell_around_it(play: Play, player: Player) -> None:
    _, events = play(player.play("shell").agent())

    assert events[0] == Said("$ pwd && echo ran > ran.txt && git status --short | head")


def test_the_prompt_is_passed_on_standard_input_and_the_schema_in_a_file(
    play: Play, player: Player, assignment: Assignment
) -> None:
    play(
        player.play("hello").agent(),
        "Fix the ö.",
        given=replace(assignment, schema=DEVELOPMENT.result_schema("developer")),
    )

    (call,) = player.received
    assert call.prompt == "Fix the ö."
    assert (call.argv[0], call.argv[-1]) == ("exec", "-")
    assert call.argv[call.argv.index("-C") + 1] == assignment.workspace
    assert "--output-schema" in call.argv
    assert call.env["ITERDEV_TASK"] == "DEV-001"


def test_nothing_is_left_beside_the_workspace(play: Play, player: Player, assignment: Assignment) -> None:
    folder = Path(assignment.session_dir).parent
    agent = player.play("hello").agent()
    before = sorted(folder.rglob("*"))

    play(agent, given=replace(assignment, environment={**assignment.environment, "TMPDIR": str(folder)}))

    assert sorted(folder.rglob("*")) == before


def test_no_schema_is_asked_for_where_there_is_none(play: Play, player: Player) -> None:
    play(player.play("hello").agent())

    assert "--output-schema" not in player.received[0].argv


@pytest.mark.parametrize(
    ("permissions", "settings"),
    [
        (Permissions(write=True), {"sandbox_mode": '"workspace-write"', "web_search": '"disabled"'}),
        (Permissions(write=False), {"sandbox_mode": '"read-only"', "sandbox_workspace_write.network_access": "false"}),
        (Permissions(write=True, network=True), {"sandbox_workspace_write.network_access": "true"}),
        (Permissions(write=True, shell=False), {"features.shell_tool": "false"}),
    ],
)
def test_what_a_role_may_do_is_what_the_sandbox_allows(
    play: Play, player: Player, assignment: Assignment, permissions: Permissions, settings: dict[str, str]
) -> None:
    play(player.play("hello").agent(), given=replace(assignment, permissions=permissions))

    found = player.received[0].settings
    assert settings.items() <= found.items()
    assert found["approval_policy"] == '"never"'


def test_the_token_of_the_team_s_tools_stands_in_the_environment_only(
    play: Play, player: Player, assignment: Assignment
) -> None:
    tools = ToolServer(url="http://127.0.0.1:1/mcp", token="s3cret-token")

    play(player.play("hello").agent(), given=replace(assignment, tools=tools))

    (call,) = player.received
    assert call.env[TOOLS_TOKEN] == "s3cret-token"
    assert call.settings["mcp_servers.iterdev.bearer_token_env_var"] == f'"{TOOLS_TOKEN}"'
    assert "s3cret-token" not in " ".join(call.argv)


def test_the_model_and_further_arguments_come_from_the_configuration(play: Play, player: Player) -> None:
    play(player.play("hello").agent(model="gpt-5.5", args=("-c", "model_reasoning_effort=high"), home="/nowhere"))

    (call,) = player.received
    assert call.argv[call.argv.index("-m") + 1] == "gpt-5.5"
    assert call.settings["model_reasoning_effort"] == "high"
    assert call.env["CODEX_HOME"] == "/nowhere"


@pytest.mark.parametrize(
    ("given", "files", "key"),
    [
        ({"OPENAI_API_KEY": "open"}, {}, "open"),
        ({"OPENAI_API_KEY": "open", "CODEX_API_KEY": "own"}, {}, "own"),
        ({"OPENAI_API_KEY": "open"}, {"auth.json": "{}"}, None),
        ({"OPENAI_API_KEY": "open"}, {"config.toml": 'cli_auth_credentials_store = "keyring"'}, None),
        ({}, {}, None),
    ],
)
def test_a_key_is_used_under_the_name_that_codex_reads_unless_the_user_has_logged_in(
    play: Play,
    player: Player,
    assignment: Assignment,
    tmp_path: Path,
    given: dict[str, str],
    files: dict[str, str],
    key: str | None,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for name, text in files.items():
        (home / name).write_text(text)

    environment = {**assignment.environment, **given}
    play(player.play("hello").agent(home=str(home)), given=replace(assignment, environment=environment))

    assert player.received[0].env.get("CODEX_API_KEY") == key


@pytest.mark.parametrize(
    ("config", "variable", "url"),
    [
        ('openai_base_url = "http://gateway/v1"', "", '"http://gateway/v1"'),
        ('openai_base_url = "http://gateway/v1"', "http://other/v1", '"http://other/v1"'),
        ("this is = = no TOML", "", None),
    ],
)
def test_the_provider_to_which_a_login_belongs_is_kept(
    play: Play,
    player: Player,
    assignment: Assignment,
    tmp_path: Path,
    config: str,
    variable: str,
    url: str | None,
) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text(config)
    environment = {**assignment.environment, "OPENAI_BASE_URL": variable}

    play(player.play("hello").agent(), given=replace(assignment, environment=environment))

    assert player.received[0].settings.get("openai_base_url") == url


def test_turns_are_one_thread_and_each_counts_for_itself(play: Play, player: Player, assignment: Assignment) -> None:
    replies, _ = play(player.play("hello", "resumed").agent(), "one", "two")

    assert [reply.usage.input_tokens for reply in replies if isinstance(reply, Answer)] == [2500, 1400]
    assert [call.argv[-3:] for call in player.received][1] == ["resume", THREAD, "-"]
    assert [call.env["ITERDEV_ATTEMPT"] for call in player.received] == ["1", "2"]


def test_a_conversation_of_an_earlier_attempt_is_taken_up_with_its_counts(
    play: Play, player: Player, assignment: Assignment
) -> None:
    agent = player.play("hello", "resumed").agent()
    earlier = answer(play(agent)[0])

    replies, _ = play(agent, given=replace(assignment, conversation=earlier.conversation))

    assert answer(replies).usage == Usage(input_tokens=1400, output_tokens=10)


def test_a_thread_that_was_never_stored_is_begun_again_with_all_that_was_said(
    play: Play, player: Player, assignment: Assignment
) -> None:
    lost = f"Error: thread/resume: thread/resume failed: no rollout found for thread id {THREAD} (code -32600)\n"
    agent = player.say([], lost, 1).play("hello").agent()

    replies, _ = play(agent, "Do it.", given=replace(assignment, conversation=THREAD))

    assert answer(replies).usage == Usage(input_tokens=2500, output_tokens=80)
    assert "resume" not in player.received[1].argv


def test_a_file_at_the_result_path_is_preferred_to_the_last_message(
    play: Play, player: Player, assignment: Assignment
) -> None:
    lines = (RECORDED / "codex-hello.jsonl").read_text().splitlines()
    agent = player.say(lines).agent()
    program = player.program.read_text().replace(
        "raise SystemExit(code)", "open(os.environ['ITERDEV_RESULT'], 'w').write('{}')"
    )
    player.program.write_text(program)

    assert answer(play(agent)[0]).body == b"{}"


def test_an_answer_that_is_too_long_for_a_line_is_read_from_its_file(play: Play, player: Player) -> None:
    agent = player.play("prose").agent()
    write = "open(sys.argv[sys.argv.index('-o') + 1], 'w').write('{\"id\": \"DEV-001\"}')"
    player.program.write_text(player.program.read_text().replace("raise SystemExit(code)", write))

    assert answer(play(agent)[0]).body == b'{"id": "DEV-001"}'


@pytest.mark.parametrize(
    ("recording", "kind", "reset"),
    [
        ("unauthorized", FailureKind.not_logged_in, None),
        ("limited", FailureKind.limited, None),
        ("limited-briefly", FailureKind.limited, NOW + 1.5),
        ("used-up", FailureKind.limited, datetime(2026, 11, 17, 1, 53).astimezone().timestamp()),
        ("overloaded", FailureKind.overloaded, None),
        ("unreachable", FailureKind.overloaded, None),
        ("too-long", FailureKind.too_long, None),
        ("prose", FailureKind.silent, None),
    ],
)
def test_a_turn_that_failed_has_its_kind(
    play: Play, player: Player, recording: str, kind: FailureKind, reset: float | None
) -> None:
    found = failure(play(player.play(recording).agent())[0])

    assert (found.kind, found.reset_at) == (kind, reset), found.message


def test_a_missing_login_is_reported_with_the_command_to_log_in(play: Play, player: Player) -> None:
    found = failure(play(player.play("unauthorized").agent())[0])

    assert "401 Unauthorized" in found.message
    assert "`codex login`" in found.message


@pytest.mark.parametrize("code", [0, 1])
def test_a_program_that_ends_in_the_middle_has_crashed_whatever_its_exit_code(
    play: Play, player: Player, code: int
) -> None:
    lines = (RECORDED / "codex-hello.jsonl").read_text().splitlines()[:3]

    found = failure(play(player.say(lines, "thread 'main' panicked\n", code).agent())[0])

    assert found.kind is FailureKind.crashed
    assert "panicked" in found.message


def test_a_complaint_with_which_it_went_on_does_not_explain_a_later_crash(play: Play, player: Player) -> None:
    lines = (RECORDED / "codex-unauthorized.jsonl").read_text().splitlines()[:3]
    went_on = (RECORDED / "codex-hello.jsonl").read_text().splitlines()[2]

    assert failure(play(player.say([*lines, went_on], "", 1).agent())[0]).kind is FailureKind.crashed


def test_a_program_that_cannot_be_started_has_crashed(play: Play) -> None:
    found = failure(play(CodexAgent(program="/no/such/codex"))[0])

    assert found.kind is FailureKind.crashed
    assert "could not be started" in found.message


def test_a_turn_beyond_its_limit_has_timed_out(play: Play, player: Player, assignment: Assignment) -> None:
    found = failure(play(player.say([], code="hang").agent(), given=replace(assignment, limit=0.3))[0])

    assert found.kind is FailureKind.timed_out


def test_a_closed_conversation_takes_no_further_turn(spawn: Spawn, player: Player, assignment: Assignment) -> None:
    async def converse() -> Reply:
        agent = player.play("hello").agent()
        async with agent.open(assignment, spawn=spawn, watch=lambda _: None) as conversation:
            pass
        return await conversation.send("Do it.")

    assert failure([anyio.run(converse)]).kind is FailureKind.timed_out


def test_lines_that_are_no_known_event_are_left_out(play: Play, player: Player) -> None:
    noise = [
        "Reading prompt from stdin...",
        "{",
        '{"type": "turn.paused"}',
        '{"type": "item.completed", "item": 7}',
        "",
    ]
    lines = (RECORDED / "codex-hello.jsonl").read_text().splitlines()

    assert answer(play(player.say([*noise, *lines, *noise]).agent())[0]).usage.input_tokens == 2500


def test_a_tool_that_was_denied_is_recorded(play: Play, player: Player) -> None:
    _, events = play(player.play("tool-denied").agent())

    assert PermissionAsked("iterdev: post_note") in events


@pytest.mark.parametrize(
    ("item", "event"),
    [
        ({"type": "web_search", "query": "plums"}, Said("search: plums")),
        ({"type": "error", "message": "Codex is ignoring\n a setting."}, Said("Codex is ignoring a setting.")),
        (
            {"type": "command_execution", "command": "bash -lc 'git push'", "status": "declined"},
            PermissionAsked("git push"),
        ),
        ({"type": "command_execution", "command": "echo 'half", "status": "declined"}, PermissionAsked("echo 'half")),
        ({"type": "agent_message", "text": "x" * 5 * LINE_LENGTH}, Said("x" * LINE_LENGTH)),
    ],
)
def test_an_item_is_reported_in_one_short_line(
    play: Play, player: Player, item: dict[str, object], event: AgentEvent
) -> None:
    _, events = play(player.say([json.dumps({"type": "item.completed", "item": item})]).agent())

    assert events == [event]


@pytest.mark.parametrize("item", [{"type": "reasoning", "text": "hm"}, {"type": "agent_message", "text": " "}, {}])
def test_an_empty_item_is_not_reported(play: Play, player: Player, item: dict[str, object]) -> None:
    _, events = play(player.say([json.dumps({"type": "item.completed", "item": item})]).agent())

    assert events == []


def test_a_patch_that_the_sandbox_rejected_is_recorded(play: Play, player: Player) -> None:
    complaint = (
        "2026-11-16T00:49:18.829650Z ERROR codex_core::tools::router: error=patch rejected: writing is blocked by "
        "read-only sandbox; rejected by user approval settings\n"
    )
    lines = (RECORDED / "codex-hello.jsonl").read_text().splitlines()

    _, events = play(player.say(lines, complaint).agent())

    assert PermissionAsked("patch rejected: writing is blocked by read-only sandbox") in events


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Quota exceeded. Check your plan and billing details.", FailureKind.limited),
        ('{"error": {"code": "context_length_exceeded", "message": "Your input exceeds"}}', FailureKind.too_long),
        ("Your access token could not be refreshed because your refresh token was revoked.", FailureKind.not_logged_in),
        ("unexpected status 403 Forbidden", FailureKind.not_logged_in),
        ("Missing environment variable: `LOCAL_API_KEY`.", FailureKind.not_logged_in),
        ("unexpected status 529 <unknown status code>: overloaded", FailureKind.overloaded),
        ("Selected model is at capacity. Please try a different model.", FailureKind.overloaded),
        ("stream disconnected before completion: stream closed before response.completed", FailureKind.overloaded),
        ("unexpected status 404 Not Found: no such model", FailureKind.crashed),
    ],
)
def test_the_words_of_a_failure_have_a_meaning(words: str, kind: FailureKind) -> None:
    assert failure_kind(words) is kind
