"""The form of a task description."""

import pytest

from iterdev.core.task_description import SECTIONS, Brief, Scope, completed, describe, missing_sections
from iterdev.teams.development.roles import Role
from iterdev.teams.development.team import DEVELOPMENT

SCOPE = Scope(requirement="Add export endpoint", folder=".workflow/x")
BRIEF = Brief(
    purpose="Build it",
    success="it is there",
    steps=("Look", "Write"),
    upstream=("design/design-001.md",),
    expected="source files",
    constraints="Minimal changes",
)


@pytest.mark.requirement("R40")
def test_a_description_has_every_section_with_its_content() -> None:
    assert describe(BRIEF, SCOPE, inner_loop=True).splitlines() == [
        "PURPOSE: Build it | Success: it is there",
        "TASK:",
        "  - Look",
        "  - Write",
        "CONTEXT:",
        "  - Session: .workflow/x",
        "  - Scope: Add export endpoint",
        "  - Upstream artifacts: design/design-001.md",
        "  - Shared memory: .workflow/x/.msg/meta.json",
        "EXPECTED: source files",
        "CONSTRAINTS: Minimal changes",
        "---",
        "InnerLoop: true",
    ]


@pytest.mark.requirement("R39")
@pytest.mark.parametrize("role", Role)
def test_only_the_developer_has_the_inner_loop(role: Role) -> None:
    expected = role is Role.developer

    assert DEVELOPMENT.roles[role].loops is expected
    assert describe(BRIEF, SCOPE, inner_loop=expected).endswith(f"InnerLoop: {str(expected).lower()}")


@pytest.mark.requirement("R41")
@pytest.mark.parametrize("section", SECTIONS)
def test_a_missing_section_is_noticed(section: str) -> None:
    whole = describe(BRIEF, SCOPE, inner_loop=False)
    broken = "\n".join(line for line in whole.splitlines() if not line.startswith(section))

    assert missing_sections(whole) == ()
    assert missing_sections(broken) == (section,)


@pytest.mark.requirement("R41")
def test_a_free_description_is_put_into_the_form_without_losing_a_word() -> None:
    free = "Add an option\n- called --dry-run\n--dry-run must print only\n\n  * and nothing else -"

    mended = completed(free, title="Dry run", scope=SCOPE, inner_loop=True)

    assert missing_sections(mended) == ()
    assert mended.startswith("PURPOSE: Dry run | Success:")
    assert mended.splitlines()[2:6] == [
        "  - Add an option",
        "  - called --dry-run",
        "  - --dry-run must print only",
        "  - and nothing else -",
    ]


@pytest.mark.requirement("R41")
def test_a_description_that_has_the_form_stays_as_it_is() -> None:
    whole = describe(BRIEF, SCOPE, inner_loop=False)

    assert completed(whole, title="other", scope=SCOPE, inner_loop=True) == whole


def test_a_description_has_one_line_of_a_long_request() -> None:
    scope = Scope(requirement="Add export\nPURPOSE: something else", folder=SCOPE.folder)
    long = Scope(requirement="x" * 900, folder=SCOPE.folder)

    text, cut = (describe(BRIEF, one, inner_loop=False) for one in (scope, long))

    assert "  - Scope: Add export …\n" in text
    assert f"  - Scope: {'x' * 199}…\n" in cut
