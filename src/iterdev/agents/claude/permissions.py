"""What a role may do with the tools of Claude Code, and the description of a tool call in one line."""

from collections.abc import Mapping

from iterdev.agents.common.environment import is_inside, real
from iterdev.agents.common.streams import LINE_LENGTH
from iterdev.agents.contract import TOOLS, Assignment, Permissions

READ_TOOLS = frozenset({"Read", "Glob", "Grep", "LS", "NotebookRead"})
WRITE_TOOLS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
SUBAGENT_TOOLS = frozenset({"Task", "Agent"})
"""Start a subagent that asks again for each tool it uses."""
NETWORK_TOOLS = frozenset({"WebFetch", "WebSearch"})

NEVER_ALLOWED = (
    *("AskUserQuestion", "EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "ListAgents", "Monitor"),
    *("ReportFindings", "ScheduleWakeup", "SendMessage", "Skill", "TaskStop", "Workflow"),
    *("Agent(claude)", "Agent(statusline-setup)"),
)
"""Tools that wait for a person, leave the workspace, continue after the turn, or are of no use without those.

Of the kinds of subagents, the one that edits the user's settings, and the one that is the same as general-purpose.

The description of every tool is sent with every request, and the list of skills after every prompt. Of skills, those
of the user and of the project are not loaded.
"""

_PATHS = ("file_path", "notebook_path", "path")
_SUBJECTS = (*_PATHS, "command", "url", "pattern", "query", "description")


def disallowed_tools(permissions: Permissions) -> tuple[str, ...]:
    """Tools that the model does not get, because Claude Code uses them in part without asking."""
    shell = () if permissions.shell else ("Bash",)
    network = () if permissions.network else tuple(sorted(NETWORK_TOOLS))
    return (*NEVER_ALLOWED, *shell, *network)


def denial_reason(tool: str, arguments: Mapping[str, object], work: Assignment) -> str:
    """Why a tool may not be used like this; empty when it may."""
    allowed = work.permissions
    if tool in WRITE_TOOLS:
        return _write_denial(arguments, work)
    if tool == "Bash":
        return "" if allowed.shell else "this role may not run commands"
    if tool in NETWORK_TOOLS:
        return "" if allowed.network else "this role may not use the network"
    known = tool in READ_TOOLS | SUBAGENT_TOOLS or tool.startswith(f"mcp__{TOOLS}__")
    return "" if known else "this role may not use it"


def _write_denial(arguments: Mapping[str, object], work: Assignment) -> str:
    path = next((str(arguments[name]) for name in _PATHS if arguments.get(name)), "")
    if path and real(work.workspace, path) == real(work.workspace, work.result_path):
        return ""
    if not work.permissions.write:
        return f"the {work.role} may not change files"
    return "" if path and is_inside(path, work.workspace) else "it is outside of the workspace"


def describe(tool: str, arguments: Mapping[str, object], workspace: str) -> str:
    """A tool call in one line: `Write hello.txt`, `Bash: npm test`."""
    name = tool.removeprefix(f"mcp__{TOOLS}__")
    subject = next((value for key in _SUBJECTS if isinstance(value := arguments.get(key), str) and value.strip()), "")
    first, *more = subject.strip().splitlines() or [""]
    shown = first.removeprefix(workspace.rstrip("/") + "/") + (" …" if more else "")
    return f"{name}{':' if tool == 'Bash' else ''} {shown}".strip()[:LINE_LENGTH]
