"""What agents say: lines of their protocols, results, messages, times at which limits end."""

import json
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.abc
import msgspec
from tests.fuzz.target import Target, files_target, text_target

from iterdev.agents.acp.conversation import BY_MESSAGE, error_in, usage_in_meta, valid_message
from iterdev.agents.claude import protocol as claude
from iterdev.agents.claude.agent import described_lines
from iterdev.agents.codex import protocol as codex
from iterdev.agents.codex.agent import Thread, TurnOutput
from iterdev.agents.codex.strict_schema import to_ordinary
from iterdev.agents.common.failures import kind_in, reset_at
from iterdev.agents.common.result_file import last_json_object, read_result, reported_usage
from iterdev.agents.common.streams import Lines, OutputTail, last_lines
from iterdev.agents.common.versions import version_note
from iterdev.agents.scripted import script
from iterdev.core.collaboration.tool_schemas import TOOLS
from iterdev.core.limits.providers import Providers, pause
from iterdev.core.policy import Policy
from iterdev.core.results import Misfit, decode
from iterdev.core.rules import worker_callbacks
from iterdev.core.types import TaskId
from iterdev.execution.tool_server import http
from iterdev.host.secrets import LineRedactor, Redactor
from iterdev.mcp import messages
from iterdev.mcp.messages import InvalidMessage
from iterdev.mcp.server import Call, Server, answer
from iterdev.mcp.tools import ToolAnswer, as_json
from iterdev.teams.development.roles import Role
from iterdev.teams.development.team import DEVELOPMENT

NOW = 1_790_000_000.0
REDACT = Redactor(["correct-horse-battery", 'päss"wörd\n'])

CLAUDE = """\
{"type":"system","subtype":"api_retry","retry_delay_ms":2000,"error_status":429}
{"type":"assistant","message":{"content":[{"type":"text","text":"Done."},{"type":"tool_use","name":"Bash","input":{"command":"ls"}}]}}
{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1790000000}}
{"type":"control_request","request_id":"1","request":{"subtype":"can_use_tool","tool_name":"Write",\
"input":{"file_path":"/x"}}}
{"type":"result","subtype":"success","is_error":true,"result":"You hit your limit, resets 3pm (UTC)",\
"api_error_status":429,"total_cost_usd":0.1,"usage":{"input_tokens":1,"output_tokens":2},"session_id":"a","structured_output":{"id":"T-1"}}
"""
CODEX = """\
{"type":"thread.started","thread_id":"a"}
{"type":"item.started","item":{"type":"command_execution","command":"bash -lc 'ls -l'"}}
{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"/w/a","kind":"add"}],"status":"declined"}}
{"type":"item.completed","item":{"type":"agent_message","text":"{\\"id\\": \\"T-1\\", \\"a\\":{\\"text\\": \\"{}\\"}}"}}
{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":2,"output_tokens":3}}
{"type":"turn.failed","error":{"message":"usage limit; try again at Nov 18th, 2026 3:30 PM."}}
error=exec_command failed: rejected by approval settings
"""
ACP = """\
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a","update":{"sessionUpdate":"agent_message_chunk",\
"content":{"type":"text","text":"x"},"_meta":{"usage":{"inputTokens":1,"outputTokens":2}}}}}
{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{}}
{"jsonrpc":"2.0","id":"2","error":{"code":-32000,"message":"login"}}
API Error: 429 quota exceeded
"""
RESETS = (
    "usage limit reached|1790000000",
    "resets at 2026-11-18T10:00:00+01:00",
    "try again in 1 day, 2 hours and 30 minutes",
    "retry after 30.5",
    "please try again at Nov 18th, 2026 3:30 PM.",
    "You hit your limit · resets 3:30pm (Europe/Berlin)",
    "retry_after: 12ms wait 5s again 3h 2m",
)
RESULT = {
    "id": "T-1",
    "status": "completed",
    "findings": "Done.",
    "discoveries": [{"type": "convention", "data": {"name": "tabs"}}],
    "changed_files": ["a.py"],
    "usage": {"input_tokens": 1, "output_tokens": 2, "cost_usd": 0.5},
    "tech_debt": ["slow", {"description": "old", "related_files": ["a"]}],
    "wisdom": {"learnings": ["x"], "decisions": [], "conventions": [], "issues": []},
    "design": "# Design",
    "components": [{"name": "a", "responsibility": "b", "files": ["a.py"]}],
    "tasks": [{"id": "1", "title": "t", "description": "d", "files": ["a.py"], "deps": ["2"]}],
    "external_dependencies": [{"name": "flask", "version_range": ">=2", "source": "pip"}],
    "scores": {"correctness": 9, "quality": 8.5},
    "score": 9,
    "issues": [{"severity": "high", "file": "a.py", "line": 3, "description": "x", "suggestion": "y"}],
    "test_command": "pytest",
}
MESSAGES = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
    {"jsonrpc": "2.0", "id": "a", "method": "tools/list"},
    {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "team_msg", "arguments": {"operation": "log", "summary": "x", "data": {"a": [1]}}},
    },
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "lock", "arguments": {"operation": "lock"}}},
)
REQUEST = b"""\
POST /mcp HTTP/1.1\r
Host: 127.0.0.1:80\r
Authorization: agent\r
Content-Length: 5\r
Expect: 100-continue\r
\r
hello"""
CHUNKED = REQUEST.replace(b"Content-Length: 5", b"Transfer-Encoding: chunked").replace(
    b"hello", b"5\r\nhello\r\n0\r\n\r\n"
)
LOG = """\
token sk-ant-0123456789012345678901234567890 and correct-horse-battery
-----BEGIN RSA PRIVATE KEY-----
MIIEowIBAAKCAQEA0123456789abcdefABCDEF0123456789abcdefABCDEF
-----END RSA PRIVATE KEY-----
{"a": "line\\nghp_0123456789012345678901234567890123456789",
"b": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijkl"}
"""


def _claude(data: bytes, _: Path) -> None:
    cost: float | None = 0.0
    for line in Lines().feed(data + b"\n"):
        match claude.read(line):
            case claude.AssistantMessage(message=message):
                list(described_lines(message, "/w"))
            case claude.SystemMessage(error_status=status, retry_delay_ms=milliseconds):
                claude.provider_wait(status, milliseconds)
            case claude.ControlRequest() as request:
                msgspec.json.encode(claude.permission(request, "no"))
            case claude.TurnResult() as result:
                claude.turn_usage(result, cost)
                claude.failure_kind(result)
                last_json_object(result.structured or (result.result or "").encode())
                cost = result.total_cost_usd


def _codex(data: bytes, _: Path) -> None:
    output = TurnOutput(lambda _: None, "", "/w")
    for stream in ("stdout", "stderr"):
        output.feed(stream, data + b"\n")
    codex.failure_kind(output.failure)
    if found := last_json_object(output.answer):
        to_ordinary(found)
    to_ordinary(data)
    Thread.parse(str(Thread(output.thread or data.decode("utf-8", "replace"))))


def _acp(data: bytes, _: Path) -> None:
    for message in filter(None, map(valid_message, Lines().feed(data + b"\n"))):
        json.dumps(message)
        params = message.get("params")
        usage_in_meta(params if isinstance(params, dict) else None)
    kind_in(error_in(last_lines(data)), BY_MESSAGE)


def _command(data: bytes, folder: Path) -> None:
    """A program of the user: lines on its output, the last object of which is the result, or a file."""
    tail = OutputTail(lambda _: None, keep=256 * 1024)
    for start in range(0, len(data), 4096):
        tail.feed(data[start : start + 4096])
    tail.finish()
    path = folder / "result.json"
    path.write_bytes(data)
    for body in (read_result(str(path)), last_json_object(tail.kept)):
        if body:
            reported_usage(body)


def _reset(text: str) -> None:
    moment = reset_at(text, NOW)
    pause(Providers(), Policy(), "acme", error=text, reset_at=moment, at=NOW)


def _result(data: bytes, _: Path) -> None:
    """As an attempt does it: without secrets, decoded, and recorded."""
    try:
        body = json.dumps(REDACT.everywhere(json.loads(data.decode("utf-8", "replace"))), ensure_ascii=False)
    except (ValueError, RecursionError):
        body = REDACT(data.decode("utf-8", "replace"))
    for role in (Role.architect, Role.developer, Role.tester, Role.reviewer):
        for given in (body, data):
            try:
                result = decode(given, kind=DEVELOPMENT.roles[role].result, task=TaskId("T-1"))
            except Misfit:
                continue
            msgspec.json.decode(msgspec.json.encode(result), type=type(result))


def _mcp(data: bytes, _: Path) -> None:
    async def use(_: object, __: Call) -> ToolAnswer:
        return as_json({})

    async def answered() -> None:
        with suppress(InvalidMessage):
            await answer(messages.read(data), Server(tools=TOOLS, use=use, is_stateless=True))

    anyio.run(answered)


class _Door:
    """Lets in whoever says `agent`."""

    def rejection(self, head: http.Head) -> http.Response | None:
        return None if head.caller == "agent" else http.Response(status=401)

    async def respond(self, _: http.Head, body: bytes) -> http.Response:
        return http.Response(status=200, body=body)


class _Wire(anyio.abc.ByteStream):
    """A connection over which the input comes, in two pieces, and then nothing."""

    def __init__(self, data: bytes) -> None:
        self._pieces = [data[: len(data) // 2], data[len(data) // 2 :]]

    async def receive(self, max_bytes: int = 65536) -> bytes:
        while self._pieces:
            piece = self._pieces[0][:max_bytes]
            self._pieces[0] = self._pieces[0][max_bytes:]
            if not self._pieces[0]:
                self._pieces.pop(0)
            if piece:
                return piece
        raise anyio.EndOfStream

    async def send(self, item: bytes) -> None:
        del item

    async def send_eof(self) -> None:
        pass

    async def aclose(self) -> None:
        pass


def _http(data: bytes, _: Path) -> None:
    async def serve() -> None:
        connections = http._Connections(http.Limits())
        await http._Connection(_Wire(data), "127.0.0.1:80", _Door(), connections).serve()

    anyio.run(serve)


def _redact(text: str) -> None:
    lines = LineRedactor(REDACT)
    for line in text.split("\n"):
        lines.feed(line)
    lines.flush()
    REDACT(text)


def _callback(text: str) -> None:
    worker_callbacks.callback(text, DEVELOPMENT.workers)
    worker_callbacks.begins_with_task(text, ["DEV", "VERIFY"])


def _bytes(*examples: str) -> list[bytes]:
    return [example.encode() for example in examples]


TARGETS: tuple[Target, ...] = (
    Target(name="claude lines", run=_claude, examples=_bytes(CLAUDE, *CLAUDE.splitlines())),
    Target(name="codex lines", run=_codex, examples=_bytes(CODEX, *CODEX.splitlines())),
    Target(name="acp lines", run=_acp, examples=_bytes(ACP, *ACP.splitlines())),
    Target(name="program output", run=_command, examples=_bytes("working\n" + json.dumps(RESULT), CODEX)),
    text_target("reset times", _reset, *RESETS),
    text_target("versions of agents", lambda text: version_note(text, "1.2.3"), "1.2.3 (Claude Code)", "0.10.0-rc.1"),
    Target(name="results", run=_result, examples=_bytes(json.dumps(RESULT), json.dumps(RESULT, indent=1))),
    Target(name="mcp messages", run=_mcp, examples=[json.dumps(message).encode() for message in MESSAGES]),
    Target(name="http requests", run=_http, examples=[REQUEST, REQUEST * 3, CHUNKED]),
    text_target("redactor", _redact, LOG, json.dumps(RESULT)),
    text_target("callbacks", _callback, "[developer] DEV-001 is done", "DEV-001 completed"),
    files_target(
        "scripts of agents",
        lambda folder: script.load(folder / "a.toml", "agent"),
        {
            "a.toml": '[[rule]]\ntask = "DEV-001"\nattempt = 1\nwrite = { "a" = "b" }\n'
            'result = { usage = { cost_usd = 1 } }\nfail = { kind = "crashed" }\n'
        },
    ),
)
