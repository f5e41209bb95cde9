from pathlib import Path

import msgspec
import pytest

from iterdev.agents.claude.permissions import denial_reason, describe, disallowed_tools
from iterdev.agents.common.streams import LINE_LENGTH
from iterdev.agents.contract import Assignment, Permissions

READ_ONLY = Permissions(write=False)
WRITING = Permissions(write=True)


def given(assignment: Assignment, permissions: Permissions) -> Assignment:
    return msgspec.structs.replace(assignment, permissions=permissions)


@pytest.mark.parametrize("tool", ["Write", "Edit", "MultiEdit", "NotebookEdit"])
def test_only_a_writing_role_changes_files_of_the_workspace(assignment: Assignment, tool: str) -> None:
    path = "notebook_path" if tool == "NotebookEdit" else "file_path"
    inside = {path: f"{assignment.workspace}/src/a.py"}

    assert denial_reason(tool, inside, given(assignment, WRITING)) == ""
    assert denial_reason(tool, inside, given(assignment, READ_ONLY)) == "the developer may not change files"


@pytest.mark.parametrize("path", ["/etc/passwd", "../elsewhere.txt", "a/../../b", ""])
def test_no_role_may_write_outside_of_the_workspace(assignment: Assignment, path: str) -> None:
    assert denial_reason("Write", {"file_path": path}, given(assignment, WRITING)) == "it is outside of the workspace"


def test_a_link_does_not_lead_out_of_the_workspace(assignment: Assignment, tmp_path: Path) -> None:
    Path(assignment.workspace, "way-out").symlink_to(tmp_path)

    assert denial_reason("Write", {"file_path": "way-out/x"}, given(assignment, WRITING)) != ""


def test_every_role_writes_its_result_file(assignment: Assignment) -> None:
    assert denial_reason("Write", {"file_path": assignment.result_path}, given(assignment, READ_ONLY)) == ""


@pytest.mark.parametrize("tool", ["Read", "Grep", "Glob", "Task", "mcp__iterdev__team_msg"])
def test_everybody_reads_anything_and_uses_the_tools_of_the_team(assignment: Assignment, tool: str) -> None:
    assert denial_reason(tool, {"file_path": "/etc/hosts"}, given(assignment, READ_ONLY)) == ""


def test_shell_and_network_are_for_those_who_have_them(assignment: Assignment) -> None:
    nothing = given(assignment, Permissions(write=True, shell=False))
    everything = given(assignment, Permissions(write=False, shell=True, network=True))

    for tool in ("Bash", "WebFetch", "WebSearch"):
        assert denial_reason(tool, {"command": "ls"}, nothing) != ""
        assert denial_reason(tool, {"command": "ls"}, everything) == ""


@pytest.mark.parametrize("tool", ["AskUserQuestion", "ExitPlanMode", "mcp__other__tool", "SomethingNew"])
def test_whatever_is_not_known_is_denied(assignment: Assignment, tool: str) -> None:
    permitted = given(assignment, Permissions(write=True, network=True))

    assert denial_reason(tool, {}, permitted) == "this role may not use it"


def test_what_claude_uses_without_asking_is_not_offered_to_those_who_may_not() -> None:
    everything = Permissions(write=True, network=True)
    nothing = Permissions(write=False, shell=False)

    assert {"Bash", "WebFetch", "WebSearch"} <= set(disallowed_tools(nothing))
    assert "Agent(statusline-setup)" in disallowed_tools(everything)
    assert not {"Bash", "WebFetch", "WebSearch", "Write", "Read"} & set(disallowed_tools(everything))


@pytest.mark.parametrize(
    ("tool", "used", "line"),
    [
        ("Write", {"file_path": "/w/src/a.py", "content": "x"}, "Write src/a.py"),
        ("Read", {"file_path": "/elsewhere/a.py"}, "Read /elsewhere/a.py"),
        ("Bash", {"command": "npm test", "description": "Run the tests"}, "Bash: npm test"),
        ("Bash", {"command": "cat > a <<X\nhi\nX"}, "Bash: cat > a <<X …"),
        ("Grep", {"pattern": "def main"}, "Grep def main"),
        ("WebFetch", {"url": "http://localhost/", "prompt": "?"}, "WebFetch http://localhost/"),
        ("mcp__iterdev__board_read", {}, "board_read"),
        ("Odd", {"file_path": 7}, "Odd"),
    ],
)
def test_a_use_of_a_tool_is_one_line(tool: str, used: dict[str, object], line: str) -> None:
    assert describe(tool, used, "/w") == line


def test_a_long_command_is_cut() -> None:
    assert len(describe("Bash", {"command": "x" * 2 * LINE_LENGTH}, "/w")) == LINE_LENGTH
