import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec
import pytest

from iterdev.agents.acp.agent import AcpAgent, write_settings
from iterdev.agents.acp.programs import PROGRAMS, Program
from iterdev.agents.contract import (
    AgentEvent,
    AgentFailure,
    Answer,
    Assignment,
    PermissionAsked,
    Permissions,
    Probe,
    Reply,
    Said,
    Spawn,
    Spent,
    ToolServer,
)
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.results import Usage

FAKE = Path(__file__).with_name("fake.py")
DONE = ["say", '{"status": "done"}']
NOW = 1_800_000_000.0

Play = Callable[..., tuple[list[Reply], list[AgentEvent]]]
Step = list[object]


def fake(about: dict[str, object] | None = None, **fields: object) -> AcpAgent:
    command = (sys.executable, str(FAKE), json.dumps(about or {}))
    return msgspec.structs.replace(AcpAgent("fake", command, now=lambda: NOW, stop_timeout=0.2), **fields)


def steps(*given: Step) -> str:
    return json.dumps(given)


def received(assignment: Assignment, method: str) -> list[dict[str, object]]:
    lines = Path(assignment.workspace, "received.jsonl").read_text().splitlines()
    return [message["params"] for line in lines if (message := json.loads(line)).get("method") == method]


def body(reply: Reply) -> dict[str, object]:
    assert isinstance(reply, Answer)
    return json.loads(reply.body)


# ---- Turns and results


def test_the_last_json_object_that_the_agent_says_is_its_result(play: Play) -> None:
    replies, _ = play(fake(), steps(["say", 'First {"status": "draft"} and then {"sta'], ["say", 'tus": "done"}.']))

    assert body(replies[0]) == {"status": "done"}


def test_a_result_file_takes_precedence_over_the_text_of_the_agent(play: Play) -> None:
    replies, _ = play(fake(), steps(DONE, ["write", '{"status": "written"}']))

    assert body(replies[0]) == {"status": "written"}


def test_a_result_file_of_the_turn_before_is_forgotten(play: Play) -> None:
    replies, _ = play(fake(), steps(["write", '{"status": "written"}']), steps(DONE))

    assert [body(reply)["status"] for reply in replies] == ["written", "done"]


def test_an_agent_has_the_time_that_it_is_known_to_need_to_store_what_was_said(
    play: Play, assignment: Assignment
) -> None:
    play(fake(program=Program(save_delay=1)), steps(["store later", "what was said"], DONE))

    assert Path(assignment.workspace, "stored").read_text() == "what was said"


def test_all_turns_of_a_conversation_are_with_one_process(play: Play, assignment: Assignment) -> None:
    asks = steps(["environment", "ITERDEV_TASK"])

    replies, _ = play(fake(), asks, asks)

    first, second = map(body, replies)
    assert first["pid"] == second["pid"]
    assert first["value"] == "DEV-001"
    assert len(received(assignment, "session/new")) == 1


def test_pieces_of_a_message_are_reported_as_lines_and_a_tool_call_once_by_its_title(play: Play) -> None:
    call = {"toolCallId": "c-7", "title": "Read a.py", "kind": "read"}

    _, events = play(
        fake(),
        steps(
            ["say", "Look"],
            ["say", "ing around\nthen"],
            ["update", {"kind": "tool_call", "toolCallId": "c-7", "title": "Read a.py"}],
            ["update", {"kind": "tool_call_update", "toolCallId": "c-7", "title": "Read a.py", "status": "completed"}],
            ["ask", {"call": call}],
        ),
    )

    said = [event.text for event in events if isinstance(event, Said)]
    assert said[:3] == ["Looking around", "then", "Read a.py"]
    assert said.count("Read a.py") == 1


def test_half_a_character_is_no_reason_to_lose_a_message(play: Play) -> None:
    halves = [f'{{"text": "{half}"}}' for half in ("\\ud83d", "\\ude00")]

    replies, _ = play(fake(), steps(*(["raw", raw_chunk(half)] for half in halves)))

    assert isinstance(replies[0], Answer)


def raw_chunk(text: str) -> str:
    half = text.replace('"', '\\"')
    return (
        '{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s-1", "update":'
        f' {{"sessionUpdate": "agent_message_chunk", "content": {{"type": "text", "text": "{half}"}}}}}}}}'
    )


def test_a_prompt_of_a_megabyte_arrives(play: Play, assignment: Assignment) -> None:
    replies, _ = play(fake(), steps(["say", "x" * 1_000_000], DONE))

    assert body(replies[0]) == {"status": "done"}


# ---- What the agent gets for its work


def test_a_conversation_is_opened_in_the_workspace_and_without_access_to_files_through_us(
    play: Play, assignment: Assignment
) -> None:
    play(fake(), steps(DONE))

    assert received(assignment, "session/new")[0]["cwd"] == assignment.workspace
    assert not received(assignment, "initialize")[0].get("clientCapabilities", {}).get("fs")


@pytest.mark.parametrize(("abilities", "expected"), [({"http": True}, 1), ({}, 0)])
def test_the_tools_of_the_team_are_offered_to_an_agent_that_can_reach_them(
    abilities: dict[str, bool], expected: int, play: Play, assignment: Assignment
) -> None:
    with_tools = msgspec.structs.replace(assignment, tools=ToolServer(url="http://127.0.0.1:1/mcp", token="tok"))

    play(fake({"capabilities": {"mcpCapabilities": abilities}}), steps(DONE), given=with_tools)

    servers = received(assignment, "session/new")[0]["mcpServers"]
    assert len(servers) == expected
    for server in servers:
        assert (server["type"], server["name"], server["url"]) == ("http", "iterdev", "http://127.0.0.1:1/mcp")
        assert server["headers"] == [{"name": "Authorization", "value": "Bearer tok"}]


def test_a_conversation_is_resumed_and_its_history_is_not_reported_again(play: Play, assignment: Assignment) -> None:
    earlier = msgspec.structs.replace(assignment, conversation="s-0")

    replies, events = play(fake({"history": ['{"status": "old"}\n']}), steps(DONE), given=earlier)

    assert received(assignment, "session/load")[0]["sessionId"] == "s-0"
    assert replies[0].conversation == "s-0"
    assert events == [Said('{"status": "done"}')]


@pytest.mark.parametrize(
    ("about", "program"),
    [({"capabilities": {"loadSession": False}}, Program()), ({}, Program(resumes=False))],
    ids=["it says so", "we know so"],
)
def test_an_agent_that_cannot_take_a_conversation_up_gets_a_new_one(
    about: dict[str, object], program: Program, play: Play, assignment: Assignment
) -> None:
    earlier = msgspec.structs.replace(assignment, conversation="s-0")

    replies, _ = play(fake(about, program=program), steps(DONE), given=earlier)

    assert len(received(assignment, "session/new")) == 1
    assert replies[0].conversation == ""


def test_a_model_without_a_flag_is_chosen_through_the_protocol(play: Play, assignment: Assignment) -> None:
    option = {"id": "the-model", "name": "Model", "category": "model", "type": "select", "currentValue": "small"}
    option["options"] = [{"value": "small", "name": "small"}, {"value": "big", "name": "big"}]

    replies, _ = play(fake({"opened": {"configOptions": [option]}}, model="big"), steps(DONE))

    assert isinstance(replies[0], Answer)
    chosen = received(assignment, "session/set_config_option")[0]
    assert (chosen["configId"], chosen["value"]) == ("the-model", "big")


def test_a_model_that_cannot_be_set_is_a_failure(play: Play) -> None:
    replies, _ = play(fake(model="big"), steps(DONE))

    assert isinstance(replies[0], AgentFailure)
    assert '"big"' in replies[0].message


@pytest.mark.parametrize(
    ("program", "variable", "value", "arguments"),
    [
        (Program(model_flag="--model", flags=("--calm",)), "NONE", None, ["--calm", "--model", "big", "--more"]),
        (Program(model_variable="FAKE_MODEL"), "FAKE_MODEL", "big", ["--more"]),
        (
            Program(settings_variable="FAKE_SETTINGS", settings={"share": False}),
            "FAKE_SETTINGS",
            '{"share": false, "model": "big"}',
            ["--more"],
        ),
    ],
    ids=["flag", "variable", "settings"],
)
def test_a_program_gets_its_model_in_its_own_way(
    program: Program, variable: str, value: str | None, arguments: list[str], play: Play
) -> None:
    agent = fake(program=program, model="big", args=("--more",))

    replies, _ = play(agent, steps(["environment", variable]))

    assert body(replies[0])["value"] == value
    assert body(replies[0])["argv"][1:] == arguments


def test_a_private_home_has_nothing_of_the_users_and_settings_that_keep_the_program_quiet(
    play: Play, tmp_path: Path
) -> None:
    home = tmp_path / "private"
    agent = fake(program=PROGRAMS["gemini"], home=str(home))

    replies, _ = play(agent, steps(["environment", "GEMINI_CLI_HOME"]), steps(["environment", "HOME"]))

    assert [body(reply)["value"] for reply in replies] == [str(home), str(home)]
    settings = json.loads((home / ".gemini" / "settings.json").read_text())
    assert settings["telemetry"] == {"enabled": False}
    assert settings["security"]["auth"]["selectedType"] == "gemini-api-key"


def test_with_the_users_own_login_our_settings_outrank_theirs_and_choose_no_login(
    play: Play, assignment: Assignment
) -> None:
    agent = fake(program=PROGRAMS["qwen"])

    replies, _ = play(agent, steps(["environment", "QWEN_CODE_SYSTEM_SETTINGS_PATH"]), steps(["environment", "HOME"]))

    path, home = (body(reply)["value"] for reply in replies)
    settings = json.loads(Path(path).read_text())
    assert settings["disableAllHooks"] is True
    assert "security" not in settings
    assert home == assignment.environment["HOME"]


# ---- Permissions

YES, NO = "allow_once", "reject_once"


@pytest.mark.parametrize(
    ("call", "permissions", "option"),
    [
        ({"kind": "read", "locations": [{"path": "/etc/hosts"}]}, Permissions(write=False), YES),
        ({"kind": "search"}, Permissions(write=False), YES),
        ({"kind": "edit", "locations": [{"path": "a.py"}]}, Permissions(write=True), YES),
        ({"kind": "edit", "rawInput": {"filePath": "a.py"}}, Permissions(write=True), YES),
        ({"kind": "edit", "content": [{"type": "diff", "path": "a.py", "newText": ""}]}, Permissions(write=True), YES),
        ({"kind": "edit", "locations": [{"path": "a.py"}]}, Permissions(write=False), NO),
        ({"kind": "edit", "locations": [{"path": "../a.py"}]}, Permissions(write=True), NO),
        ({"kind": "edit", "locations": [{"path": "a.py"}, {"path": "/etc/hosts"}]}, Permissions(write=True), NO),
        ({"kind": "edit"}, Permissions(write=True), NO),
        ({"kind": "delete", "locations": [{"path": "link/a.py"}]}, Permissions(write=True), NO),
        ({"kind": "execute"}, Permissions(write=False, shell=True), YES),
        ({"kind": "execute"}, Permissions(write=True, shell=False), NO),
        ({"kind": "fetch"}, Permissions(write=True, network=True), YES),
        ({"kind": "fetch"}, Permissions(write=True, network=False), NO),
        ({"kind": "switch_mode"}, Permissions(write=True), NO),
        ({"kind": "other", "title": "team_msg (iterdev MCP Server)"}, Permissions(write=False), YES),
        ({"title": "iterdev-report_result"}, Permissions(write=False), YES),
        ({"kind": "other", "title": '{"note": "iterdev_x"}'}, Permissions(write=True, network=True), NO),
        ({"title": "Bash"}, Permissions(write=False, shell=True), YES),
        ({"kind": "other", "title": "shell · npm test"}, Permissions(write=True, shell=False), NO),
        ({"kind": "other", "title": "write · a.py", "rawInput": {"path": "a.py"}}, Permissions(write=True), YES),
        ({"kind": "other", "title": "write · a.py", "rawInput": {"path": "../a.py"}}, Permissions(write=True), NO),
    ],
)
def test_a_permission_is_given_or_denied_by_what_the_role_may_do(
    call: dict[str, object], permissions: Permissions, option: str, play: Play, assignment: Assignment, tmp_path: Path
) -> None:
    Path(assignment.workspace, "link").symlink_to(tmp_path)
    work = msgspec.structs.replace(assignment, permissions=permissions)

    replies, events = play(fake(), steps(["ask", {"call": {"title": "do it", **call}}]), given=work)

    assert body(replies[0])["outcome"] == {"outcome": "selected", "optionId": option}
    asked = [event.what for event in events if isinstance(event, PermissionAsked)]
    assert asked == ([] if option == YES else [call.get("title", "do it")])


def test_a_denial_for_which_there_is_no_option_cancels_the_call(play: Play) -> None:
    options = [{"optionId": "a", "name": "a", "kind": "allow_always"}]

    replies, _ = play(fake(), steps(["ask", {"call": {"kind": "fetch"}, "options": options}]))

    assert body(replies[0])["outcome"] == {"outcome": "cancelled"}


def test_an_unsupported_request_is_rejected_and_the_turn_continues(play: Play) -> None:
    replies, _ = play(fake(), steps(["request", "fs/read_text_file"]))

    assert body(replies[0]) == {"error": -32601}


# ---- Usage


def test_tokens_are_found_wherever_an_agent_reports_them(play: Play) -> None:
    whole = {"usage": {"totalTokens": 12, "inputTokens": 10, "outputTokens": 2}}
    quota = {"_meta": {"quota": {"token_count": {"input_tokens": 20, "output_tokens": 3}}}}
    call = {"kind": "agent_message_chunk", "content": {"type": "text", "text": ""}}
    call["_meta"] = {"usage": {"inputTokens": 30, "outputTokens": 4}}

    replies, events = play(
        fake(),
        steps(DONE, ["end", whole]),
        steps(DONE, ["end", quota]),
        steps(DONE, ["update", call], ["update", call]),
    )

    expected = [(10, 2), (20, 3), (60, 8)]
    assert [(reply.usage.input_tokens, reply.usage.output_tokens) for reply in replies] == expected
    assert [event.usage for event in events if isinstance(event, Spent)] == [reply.usage for reply in replies]


@pytest.mark.parametrize("end", [["error", {"code": 1, "message": "429"}], ["exit", 1]])
def test_the_usage_of_a_turn_without_an_end_is_reported_too(play: Play, end: list[object]) -> None:
    call = {"kind": "agent_message_chunk", "content": {"type": "text", "text": ""}}
    call["_meta"] = {"usage": {"inputTokens": 30, "outputTokens": 4}}

    replies, events = play(fake(), steps(["update", call], end))

    assert isinstance(replies[0], AgentFailure)
    reported = [event.usage for event in events if isinstance(event, Spent)]
    assert reported == [Usage(input_tokens=30, output_tokens=4)]


def test_an_agent_that_counts_from_the_start_is_charged_for_the_turn_alone(play: Play) -> None:
    turns = [
        steps(DONE, ["end", {"usage": {"totalTokens": n, "inputTokens": n, "outputTokens": 0}}]) for n in (100, 250)
    ]

    replies, _ = play(fake(program=Program(cumulative_usage=True)), *turns)

    assert [reply.usage for reply in replies] == [Usage(input_tokens=100), Usage(input_tokens=150)]


# ---- Failures


@pytest.mark.parametrize(
    ("error", "kind", "wait"),
    [
        ({"code": -32000, "message": "Authentication required"}, FailureKind.not_logged_in, None),
        ({"code": -32603, "message": "Internal error", "data": {"details": "401 bad key"}}, "not logged in", None),
        ({"code": 429, "message": "rate limit reached"}, FailureKind.limited, None),
        ({"code": 1, "message": "Quota exceeded, it will reset after 1h2m3s."}, FailureKind.limited, 3723),
        ({"code": 1, "message": "429", "data": {"retryDelay": "34.5s"}}, FailureKind.limited, 34.5),
        ({"code": 1, "message": "Too many requests: please try again in 2 minutes"}, FailureKind.limited, 120),
        ({"code": 1, "message": "Rate limit (retry-after: 7)"}, FailureKind.limited, 7),
        ({"code": 1, "message": '{"error":{"code":503,"message":"busy"}}'}, FailureKind.overloaded, None),
        ({"code": 1, "message": "The model is overloaded"}, FailureKind.overloaded, None),
        ({"code": -32603, "message": "Internal error", "data": {"details": "terminated"}}, "overloaded", None),
        ({"code": 1, "message": "Internal error", "data": {"errorName": "APIError"}}, "overloaded", None),
        ({"code": 1, "message": "400 prompt is too long: 9 tokens > 8 maximum"}, FailureKind.too_long, None),
        ({"code": -32603, "message": "Internal error"}, FailureKind.crashed, None),
    ],
)
def test_the_words_of_a_refusal_say_what_the_failure_is(
    error: dict[str, object], kind: str, wait: float | None, play: Play
) -> None:
    replies, _ = play(fake(), steps(["error", error]))

    assert isinstance(replies[0], AgentFailure)
    assert replies[0].kind == kind
    assert replies[0].reset_at == (None if wait is None else NOW + wait)


def test_an_agent_without_a_login_says_how_to_log_in(play: Play) -> None:
    agent = fake({"refuse": {"code": -32000, "message": "Authentication required"}}, program=PROGRAMS["gemini"])

    replies, _ = play(agent, steps(DONE))

    assert replies[0].kind is FailureKind.not_logged_in
    assert "GEMINI_API_KEY" in replies[0].message


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        ([], FailureKind.silent),
        ([["say", "All is well."]], FailureKind.silent),
        ([["say", "I added a check for status 401."]], FailureKind.silent),
        ([["say", "The test says error: 401 was expected."]], FailureKind.silent),
        ([["say", "[API Error: 401 invalid key]"]], FailureKind.not_logged_in),
        ([["say", "Info: Retrying..."], ["say", "Error: Failed; last error: 500"]], FailureKind.overloaded),
        ([["say", "I will "], ["say", "Network error: error decoding response body"]], FailureKind.overloaded),
        ([["stderr", "request failed: 401 Unauthorized"]], FailureKind.not_logged_in),
        ([["say", "Well"], ["end", {"stopReason": "max_tokens"}]], FailureKind.too_long),
    ],
)
def test_a_turn_without_a_result_is_a_failure(turn: list[Step], kind: FailureKind, play: Play) -> None:
    # Another turn first: what the agent complained about then is no longer true.
    replies, _ = play(fake(), steps(["stderr", "overloaded"], DONE), steps(*turn))

    assert isinstance(replies[1], AgentFailure)
    assert replies[1].kind is kind


def test_a_crashed_agent_is_reported_with_the_end_of_its_standard_error(play: Play) -> None:
    replies, _ = play(fake(), steps(["stderr", "cannot go on"], ["exit", 3]), steps(DONE))

    for reply in replies:
        assert isinstance(reply, AgentFailure)
        assert reply.kind is FailureKind.crashed
        assert "exited with code 3: cannot go on" in reply.message


def test_an_agent_that_crashes_before_its_first_message_is_reported(play: Play) -> None:
    replies, _ = play(fake({"exit": 4}), steps(DONE))

    assert replies[0].kind is FailureKind.crashed
    assert "exited with code 4" in replies[0].message


def test_a_program_that_is_not_there_is_a_failure(play: Play) -> None:
    replies, _ = play(AcpAgent("fake", ("/no/such/program",)), steps(DONE))

    assert replies[0].kind is FailureKind.crashed
    assert "/no/such/program" in replies[0].message


def test_an_agent_that_takes_too_long_has_timed_out(play: Play, assignment: Assignment) -> None:
    short = msgspec.structs.replace(assignment, limit=2)

    replies, _ = play(fake(), steps(["sleep", 60]), given=short)

    assert replies[0].kind is FailureKind.timed_out


def test_lines_that_are_not_messages_are_skipped_without_output_on_the_terminal(
    play: Play, capfd: pytest.CaptureFixture[str]
) -> None:
    noise = [
        "Welcome!",
        "",
        "17",
        "[]",
        "{",
        "[" * 100_000,
        "\ufffd\x01",
        '{"id": {"a": 1}, "result": {}}',
        '{"id": 9999, "result": {}}',
        '{"id": 0, "error": "a word"}',
        '{"method": 5}',
        '{"method": "fake/notify", "params": {}}',
        '{"method": "session/update", "params": {"sessionId": "s-1", "update": {"sessionUpdate": "news"}}}',
        '{"method": "session/update"}',
    ]

    replies, events = play(fake(), steps(*(["raw", line] for line in noise), DONE))

    assert body(replies[0]) == {"status": "done"}
    assert events == [Said('{"status": "done"}')]
    assert capfd.readouterr() == ("", "")


# ---- Interruption


@pytest.mark.parametrize("manner", ["hang", "deaf"])
def test_the_next_prompt_interrupts_a_turn_also_when_the_agent_does_not_answer_a_cancel(
    manner: str, spawn: Spawn, assignment: Assignment
) -> None:
    replies: dict[str, Reply] = {}

    async def converse() -> None:
        busy = anyio.Event()
        async with (
            fake().open(assignment, spawn=spawn, watch=lambda _: busy.set()) as conversation,
            anyio.create_task_group() as group,
        ):

            async def send(name: str, prompt: str) -> None:
                replies[name] = await conversation.send(prompt)

            group.start_soon(send, "first", steps([manner, True]))
            await busy.wait()
            await send("second", steps(DONE))

    anyio.run(converse)

    assert isinstance(replies["first"], AgentFailure)
    assert "was interrupted" in replies["first"].message
    assert body(replies["second"]) == {"status": "done"}
    assert len(received(assignment, "session/cancel")) == 1


@pytest.mark.parametrize("manner", ["hang", "deaf"])
def test_leaving_in_the_middle_of_a_turn_cancels_it_and_ends_the_program(
    manner: str, spawn: Spawn, assignment: Assignment
) -> None:
    async def converse() -> None:
        with anyio.CancelScope() as scope:
            async with fake().open(assignment, spawn=spawn, watch=lambda _: scope.cancel()) as conversation:
                await conversation.send(steps([manner, True]))

    anyio.run(converse)

    assert not processes_in(assignment.workspace)


def processes_in(folder: str) -> list[int]:
    """The processes whose current folder it is."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            here = (entry / "cwd").readlink() == Path(folder).resolve()
        except OSError:
            continue
        if here:
            found.append(int(entry.name))
    return found


# ---- Probing and loading


def installed(folder: Path, version: str) -> str:
    """A program in an npm package, as npm links it."""
    package = folder / "lib" / "node_modules" / "fake"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "fake", "version": version}))
    program = package / "fake.js"
    program.touch(mode=0o755)
    link = folder / "fake"
    link.symlink_to(program)
    return str(link)


def test_a_missing_program_is_reported_with_the_command_to_install_it() -> None:
    probe = AcpAgent("goose", ("no-such-goose", "acp"), program=PROGRAMS["goose"]).probe()

    assert not probe.installed
    assert probe.hint == "npm install -g @aaif/goose"


@pytest.mark.parametrize(
    ("version", "note"),
    [("1.9.0", ""), ("1.10.0", ""), ("1.10.1", "version 1.10.1 is newer than 1.10.0, the last one known to work")],
)
def test_a_version_is_found_without_a_start_and_a_newer_one_than_known_is_noted(
    version: str, note: str, tmp_path: Path
) -> None:
    probe = AcpAgent("fake", (installed(tmp_path, version),), program=Program(version="1.10.0")).probe()

    assert probe == Probe(installed=True, version=version, note=note)


def test_the_package_of_the_protocol_is_not_loaded_before_a_conversation_is_opened() -> None:
    code = "import sys; from iterdev.agents.acp import agent; print({'acp', 'pydantic'} & set(sys.modules))"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "set()"


@pytest.mark.parametrize("name", ["settings.json", ".agent/settings.json"])
def test_settings_are_not_written_through_a_link_that_an_agent_left(tmp_path: Path, name: str) -> None:
    folder, users = tmp_path / "folder", tmp_path / "users"
    folder.mkdir()
    users.mkdir()
    (users / "settings.json").write_text("the user's", encoding="utf-8")
    (folder / "settings.json").symlink_to(users / "settings.json")
    (folder / ".agent").symlink_to(users)

    with suppress(OSError):
        write_settings(name, {}, folder=folder)

    assert (users / "settings.json").read_text(encoding="utf-8") == "the user's"
    assert name.startswith(".") or (folder / name).read_text(encoding="utf-8") == "{}"
