"""The tool calls of a turn, with the names and arguments of the tools that a coding agent offers.

A tool that is not offered is called as well: the agent rejects the call, and the conversation continues.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from iterdev.agents.scripted.script import Call, Step
from iterdev.conformance.model.messages import ModelRequest, Tool, ToolCall

_PATHS = ("file_path", "filePath", "path", "absolute_path")
_CONTENTS = ("content", "file_text", "contents")
_WRITERS = ("Write", "write_file", "write", "create")
_READERS = ("Read", "read_file", "read", "view")
_SHELLS = ("Bash", "bash", "exec_command", "run_shell_command", "shell", "Shell", "developer__shell")
_COMMANDS = ("command", "cmd")
_STRUCTURED = ("StructuredOutput", "structured_output", "recipe__final_output")

_CWD = (
    re.compile(r"<(?:cwd|working-directory)>(/.+?)</"),
    re.compile(r"\*\*Workspace Directories:\*\*\n +- (/.+)"),
    re.compile(r"[Ww]orking (?:in the )?directory(?:: | is `)(/[^\n`]+)"),
)
"""How codex and goose, gemini, and all others name their working directory."""


def cwd_in(text: str) -> str:
    """The workspace of the coding agent, if its prompts name it."""
    found = next((found for pattern in _CWD if (found := pattern.search(text))), None)
    return found[1].rstrip() if found else ""


def uses_tool(turn: Step) -> bool:
    return bool(turn.write or turn.read or turn.run or turn.call)


def calls(turn: Step, request: ModelRequest, cwd: str) -> tuple[ToolCall, ...]:
    """The tool calls of a turn; none if it only says something."""
    offered = {tool.name: tool for tool in request.tools}
    match turn:
        case Step(result=dict(result)):
            return tuple(ToolCall(tool=name, arguments=result) for name in _STRUCTURED if name in offered)[:1]
        case Step(call=Call() as call):
            return (_named_call(call, request.tools),)
        case Step() if not uses_tool(turn):
            return ()
        case Step() if "exec" in offered and offered["exec"].freeform:
            return (ToolCall(tool="exec", arguments=_javascript(turn)),)
        case Step() if turn.write and "apply_patch" in offered and offered["apply_patch"].freeform:
            return (ToolCall(tool="apply_patch", arguments=_patch(turn.write)),)
        case _:
            return tuple(_plain_calls(turn, cwd, offered))


def _plain_calls(turn: Step, cwd: str, offered: Mapping[str, Tool]) -> Iterator[ToolCall]:
    for path, content in turn.write.items():
        yield _call(offered, _WRITERS, [(_PATHS, str(PurePosixPath(cwd, path))), (_CONTENTS, content)])
    if turn.read and not offered.keys().isdisjoint(_READERS):
        yield _call(offered, _READERS, [(_PATHS, str(PurePosixPath(cwd, turn.read)))])
    elif turn.read:
        yield _call(offered, _SHELLS, [(_COMMANDS, f"cat {shlex.quote(turn.read)}")])
    if turn.run:
        yield _call(offered, _SHELLS, [(_COMMANDS, turn.run)])


def _call(offered: Mapping[str, Tool], tools: Sequence[str], values: Sequence[tuple[Sequence[str], str]]) -> ToolCall:
    """Calls the first of the tools that is offered and has all arguments, each under one of its possible names."""
    for tool in (offered[name] for name in tools if name in offered):
        known = tool.parameters.properties
        arguments = {name: value for names, value in values if (name := next(filter(known.__contains__, names), ""))}
        if len(arguments) == len(values):
            required = {name: _placeholder(known.get(name)) for name in tool.parameters.required}
            return ToolCall(tool=tool.name, arguments=required | arguments)
    return ToolCall(tool=tools[0], arguments={names[0]: value for names, value in values})


def _placeholder(schema: object) -> object:
    match schema:
        case {"type": "boolean"}:
            return False
        case {"type": "integer" | "number"}:
            return 60_000
        case _:
            return "part of the script"


def _named_call(call: Call, offered: Sequence[Tool]) -> ToolCall:
    exact = (tool for tool in offered if tool.name == call.tool)
    ending = (tool for tool in offered if re.search(rf"[^a-zA-Z0-9]{re.escape(call.tool)}$", tool.name))
    tool = next(exact, None) or next(ending, None)
    if tool is not None:
        return ToolCall(tool=tool.name, arguments=call.arguments, namespace=tool.namespace)
    if any(tool.name == "exec" and tool.freeform for tool in offered):
        return ToolCall(tool="exec", arguments=_javascript(Step(call=call)))
    return ToolCall(tool=call.tool, arguments=call.arguments, namespace=f"mcp__{call.server}" if call.server else "")


def _patch(files: dict[str, str]) -> str:
    """The changes as one text, in the format of codex."""
    lines = ["*** Begin Patch"]
    for path, content in files.items():
        lines += [f"*** Add File: {path}", *(f"+{line}" for line in content.splitlines())]
    return "\n".join([*lines, "*** End Patch", ""])


def _javascript(turn: Step) -> str:
    """The calls for codex in "code mode", where a single tool takes a program that calls the others."""
    match turn:
        case Step(call=Call() as call):
            found = f"ALL_TOOLS.find((tool) => tool.name.endsWith({json.dumps(call.tool)}))"
            return f"text(await tools[{found}.name]({json.dumps(call.arguments)}));"
        case Step(write=dict(files)) if files:
            return f"text(await tools.apply_patch({json.dumps(_patch(files))}));"
        case _:
            command = json.dumps(turn.run or f"cat {shlex.quote(turn.read)}")
            return f"const ran = await tools.exec_command({{cmd: {command}}}); text(ran.output ?? ran);"
