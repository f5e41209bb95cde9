"""What a role may do with the tools of Claude Code, and how a use of one is described in a line."""

from collections.abc import Mapping

from iterdev.agents.command import LINE_LENGTH
from iterdev.agents.common.paths import is_inside, real
from iterdev.agents.contract import TOOLS, Assignment, Permissions

READERS = frozenset({"Read", "Glob", "Grep", "LS", "NotebookRead"})
WRITERS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
DELEGATES = frozenset({"Task", "Agent", "Skill"})
"""Start something that asks again for each tool it uses."""
NETWORK = frozenset({"WebFetch", "WebSearch"})

UNATTENDED = ("AskUserQuestion", "EnterPlanMode", "EnterWorktree", "ScheduleWakeup", "Monitor")
"""Wait for a person, leave the workspace, or go on after the turn."""

_PATHS = ("file_path", "notebook_path", "path")
_SUBJECTS = (*_PATHS, "command", "url", "pattern", "query", "description")


def withheld(permissions: Permissions) -> tuple[str, ...]:
    """Tools that are not even offered, because Claude Code uses them in part without asking."""
    shell = () if permissions.shell else ("Bash",)
    network = () if permissions.network else tuple(sorted(NETWORK))
    return (*UNATTENDED, *shell, *network)


def objection(tool: str, given: Mapping[str, object], work: Assignment) -> str:
    """Why a tool may not be used like this; empty when it may."""
    allowed = work.permissions
    if tool in WRITERS:
        return _objection_to_writing(given, work)
    if tool == "Bash":
        return "" if allowed.shell else "this role may not run commands"
    if tool in NETWORK:
        return "" if allowed.network else "this role may not use the network"
    known = tool in READERS | DELEGATES or tool.startswith(f"mcp__{TOOLS}__")
    return "" if known else "nobody is there to allow it"


def _objection_to_writing(given: Mapping[str, object], work: Assignment) -> str:
    path = next((str(given[name]) for name in _PATHS if given.get(name)), "")
    if path and real(work.workspace, path) == real(work.workspace, work.result_path):
        return ""
    if not work.permissions.write:
        return f"the {work.role} may not change files"
    return "" if path and is_inside(path, work.workspace) else "it is outside of the workspace"


def described(tool: str, given: Mapping[str, object], workspace: str) -> str:
    """A use of a tool in one line: `Write hello.txt`, `Bash: npm test`."""
    name = tool.removeprefix(f"mcp__{TOOLS}__")
    subject = next((value for key in _SUBJECTS if isinstance(value := given.get(key), str) and value.strip()), "")
    first, *more = subject.strip().splitlines() or [""]
    shown = first.removeprefix(workspace.rstrip("/") + "/") + (" …" if more else "")
    return f"{name}{':' if tool == 'Bash' else ''} {shown}".strip()[:LINE_LENGTH]
