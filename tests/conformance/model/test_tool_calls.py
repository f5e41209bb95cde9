"""What a turn wants, in the words of each coding agent's own tools."""

import json

import pytest

from iterdev.agents.scripted.script import Call, Step
from iterdev.conformance.model import tool_calls
from iterdev.conformance.model.messages import ModelRequest, Parameters, Tool, ToolCall

CWD = "/home/ada/shop"
WRITE = Step(write={"a.txt": "one\ntwo\n"})
RUN = Step(run="ls")
READ = Step(read="a.txt")
NOTE = Step(call=Call(tool="post_note", arguments={"text": "hi"}, server="notes"))


def tool(name: str, *properties: str, required: tuple[str, ...] = ()) -> Tool:
    return Tool(name=name, parameters=Parameters({word: {"type": "string"} for word in properties}, required))


def freeform(name: str) -> Tool:
    return Tool(name=name, freeform=True)


def calls(turn: Step, *offered: Tool) -> tuple[ToolCall, ...]:
    return tool_calls.calls(turn, ModelRequest(model="m", streaming=True, history=(), tools=offered), CWD)


def call(turn: Step, *offered: Tool) -> ToolCall:
    (only,) = calls(turn, *offered)
    return only


@pytest.mark.parametrize(
    ("offered", "arguments"),
    [
        (tool("Write", "file_path", "content"), {"file_path": "/home/ada/shop/a.txt", "content": "one\ntwo\n"}),
        (tool("write_file", "file_path", "content"), {"file_path": "/home/ada/shop/a.txt", "content": "one\ntwo\n"}),
        (tool("write", "filePath", "content"), {"filePath": "/home/ada/shop/a.txt", "content": "one\ntwo\n"}),
        (tool("create", "path", "file_text"), {"path": "/home/ada/shop/a.txt", "file_text": "one\ntwo\n"}),
    ],
    ids=["claude and kimi", "gemini and qwen", "opencode", "copilot"],
)
def test_a_file_is_written_with_the_tool_that_is_offered(offered: Tool, arguments: dict[str, str]) -> None:
    assert call(WRITE, tool("Grep", "pattern"), offered) == ToolCall(tool=offered.name, arguments=arguments)


@pytest.mark.parametrize(
    ("name", "argument"), [("Bash", "command"), ("exec_command", "cmd"), ("run_shell_command", "command")]
)
def test_a_command_is_run_with_the_shell_that_is_offered(name: str, argument: str) -> None:
    assert call(RUN, tool(name, argument, "workdir")) == ToolCall(tool=name, arguments={argument: "ls"})


def test_several_files_are_several_calls_and_one_patch() -> None:
    turn = Step(write={"a.txt": "a\n", "b.txt": "b\n"})

    assert [made.arguments["file_path"] for made in calls(turn, tool("Write", "file_path", "content"))] == [
        "/home/ada/shop/a.txt",
        "/home/ada/shop/b.txt",
    ]
    assert call(turn, freeform("apply_patch")) == ToolCall(
        tool="apply_patch",
        arguments="*** Begin Patch\n*** Add File: a.txt\n+a\n*** Add File: b.txt\n+b\n*** End Patch\n",
    )


def test_an_absolute_path_stays_as_it_is() -> None:
    made = call(Step(write={"/elsewhere/a": ""}), tool("Write", "file_path", "content"))

    assert made.arguments == {"file_path": "/elsewhere/a", "content": ""}


def test_what_a_tool_requires_besides_is_filled_with_something_of_its_type() -> None:
    kinds = {"command": {"type": "string"}, "wait": {"type": "boolean"}, "ms": {"type": "integer"}, "why": {}}
    shell = Tool(name="bash", parameters=Parameters(kinds, ("command", "wait", "ms", "why")))

    assert call(RUN, shell).arguments == {"command": "ls", "wait": False, "ms": 60_000, "why": "part of the script"}


def test_a_file_is_read_with_a_tool_or_else_with_a_command() -> None:
    assert call(READ, tool("Read", "file_path")).arguments == {"file_path": "/home/ada/shop/a.txt"}
    assert call(READ, tool("exec_command", "cmd")).arguments == {"cmd": "cat a.txt"}


def test_a_tool_that_is_not_offered_is_called_all_the_same() -> None:
    assert call(RUN, tool("write_file", "file_path", "content")) == ToolCall(tool="Bash", arguments={"command": "ls"})
    assert call(WRITE, tool("Write", "unheard_of")).tool == "Write"


@pytest.mark.parametrize("name", ["post_note", "mcp__notes__post_note", "mcp_notes_post_note", "notes-post_note"])
def test_a_tool_is_found_by_the_end_of_its_name(name: str) -> None:
    assert call(NOTE, tool("repost_note"), tool(name, "text")) == ToolCall(tool=name, arguments={"text": "hi"})


def test_a_tool_of_a_namespace_is_called_in_it() -> None:
    offered = Tool(name="post_note", namespace="mcp__notes")

    assert call(NOTE, offered).namespace == "mcp__notes"


def test_a_tool_that_is_hidden_is_called_by_the_name_of_its_server() -> None:
    assert call(NOTE, tool("ToolSearch", "query")).full_name == "mcp__notes__post_note"
    assert call(Step(call=Call(tool="anything")), tool("ToolSearch", "query")).full_name == "anything"


@pytest.mark.parametrize("name", ["StructuredOutput", "structured_output"])
def test_the_final_answer_goes_through_the_tool_for_structured_output(name: str) -> None:
    assert call(Step(result={"status": "done"}), tool("Bash", "command"), tool(name)) == ToolCall(
        tool=name, arguments={"status": "done"}
    )


def test_without_such_a_tool_the_final_answer_is_text() -> None:
    assert calls(Step(result={"status": "done"}), tool("Bash", "command")) == ()


def test_a_turn_that_only_speaks_calls_nothing() -> None:
    assert calls(Step(say="hello"), tool("Bash", "command"), freeform("exec")) == ()


@pytest.mark.parametrize(
    ("turn", "asked_for"),
    [
        (WRITE, ["tools.apply_patch", json.dumps("*** Begin Patch")[1:-1]]),
        (RUN, ["tools.exec_command", '{cmd: "ls"}']),
        (READ, ["tools.exec_command", "cat a.txt"]),
        (NOTE, ['endsWith("post_note")', '{"text": "hi"}']),
    ],
)
def test_in_code_mode_a_program_makes_the_calls(turn: Step, asked_for: list[str]) -> None:
    made = call(turn, freeform("exec"))

    assert made.tool == "exec"
    assert all(words in str(made.arguments) for words in asked_for)


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n  <cwd>/a b/c</cwd>\n  <shell>bash</shell>",
        "<working-directory>/a b/c</working-directory>",
        "\n - Primary working directory: /a b/c\n - Is a git repository",
        "- **Workspace Directories:**\n  - /a b/c\n- **Directory Structure:**",
        "I'm currently working in the directory: /a b/c\nHere is the folder structure",
        "<env>\n  Working directory: /a b/c\n  Workspace root",
        "The current working directory is `/a b/c`. The",
    ],
    ids=["codex", "goose", "claude", "gemini", "qwen", "opencode and copilot", "kimi"],
)
def test_the_workspace_is_found_in_the_agents_own_words(text: str) -> None:
    assert tool_calls.cwd_in(f"Hello.\n{text}\nBye.") == "/a b/c"


def test_without_such_words_paths_stay_relative() -> None:
    made = tool_calls.calls(WRITE, ModelRequest(model="m", streaming=True, history=()), tool_calls.cwd_in("Hello."))

    assert made[0].arguments == {"file_path": "a.txt", "content": "one\ntwo\n"}
