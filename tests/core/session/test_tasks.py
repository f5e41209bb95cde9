"""Waves of a table, and what makes a table wrong."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.conftest import task

from iterdev.core.errors import UserError
from iterdev.core.session.graph import CycleError, depths
from iterdev.core.session.tasks import Fault, Task, checked, joining
from iterdev.core.types import Mode, TaskId
from iterdev.store.session_folder import tasks_csv
from iterdev.teams.development.roles import Fields, Pipeline, Role
from iterdev.teams.development.team import DEVELOPMENT

HEADER = "id,description,role,deps,context_from,exec_mode,status,pipeline,sprint_num,gc_round"


def waves(*rows: Task) -> dict[str, int]:
    placed = checked(rows)
    assert not isinstance(placed, Fault), placed
    return {row.id: row.wave for row in placed}


@pytest.mark.requirement("R45")
def test_waves_start_at_1_and_follow_the_deepest_dependency() -> None:
    rows = task("REVIEW-001", "DEV-001", "DEV-002"), task("DEV-001"), task("DEV-002", "DEV-001")

    assert waves(*rows) == {"DEV-001": 1, "DEV-002": 2, "REVIEW-001": 3}


@pytest.mark.requirement("R45")
def test_interactive_rows_have_waves_like_all_others() -> None:
    talk = task("DEV-001", mode=Mode.interactive)

    assert waves(talk, task("VERIFY-001", "DEV-001")) == {"DEV-001": 1, "VERIFY-001": 2}


@pytest.mark.requirement("R45")
def test_rows_that_are_added_count_from_the_rows_above_them() -> None:
    above = joining([task("DEV-001"), task("REVIEW-001", "DEV-001")], {})

    (fix,) = joining([task("DEV-fix-1", "REVIEW-001")], {row.id: row for row in above})

    assert fix.wave == 3


def test_rows_that_share_their_dependencies_are_in_one_wave_also_when_another_stands_between_them() -> None:
    first, second = task("DESIGN-001"), task("DESIGN-002", "DESIGN-001")
    shared = (first.id, second.id)
    built = [msgspec.structs.replace(task(f"DEV-00{number}"), deps=shared) for number in (1, 2, 3)]

    placed = joining([first, second, *built[:2], task("REVIEW-001", "DEV-001"), built[2]], {})

    assert [row.wave for row in placed] == [1, 2, 3, 3, 4, 3]


@pytest.mark.requirement("R46")
def test_a_circle_is_refused_with_the_tasks_in_it() -> None:
    fault = checked([task("DEV-001", "DEV-002"), task("DEV-002", "DEV-001")])

    assert fault == Fault(0, "the tasks depend on each other in a cycle: DEV-001 -> DEV-002 -> DEV-001")


@pytest.mark.requirement("R46", "R162")
@pytest.mark.parametrize(
    ("rows", "number", "message"),
    [
        pytest.param([task("DEV-001"), task("DEV-001")], 1, 'the id "DEV-001" is used twice', id="id twice"),
        pytest.param(
            [task("DEV-001", "DEV-009")], 0, '"DEV-001" depends on "DEV-009", which is not in the table', id="unknown"
        ),
        pytest.param([task("DEV-001", "DEV-001")], 0, '"DEV-001" depends on itself', id="itself"),
        pytest.param(
            [task("DEV-001"), task("DEV-002", "DEV-001", "DEV-001")],
            1,
            '"DEV-002" depends on the same task twice',
            id="dependency twice",
        ),
        pytest.param(
            [task("DEV-001"), task("DEV-002", context=["DEV-7"])],
            1,
            '"DEV-002" takes context from "DEV-7", which is not in the table',
            id="unknown context",
        ),
        pytest.param(
            [task("DEV-001"), task("DEV-002", context=["DEV-001"])],
            1,
            '"DEV-002" takes context from "DEV-001", which is in wave 1 and not before wave 1',
            id="context of the same wave",
        ),
        pytest.param(
            [task("DEV-001", context=["DEV-002"]), task("DEV-002", "DEV-001")],
            0,
            '"DEV-001" takes context from "DEV-002", which is in wave 2 and not before wave 1',
            id="context of a later wave",
        ),
        pytest.param(
            [task("DEV-001"), task("DEV-002", "DEV-003"), task("DEV-003", "DEV-002")],
            1,
            "the tasks depend on each other in a cycle: DEV-002 -> DEV-003 -> DEV-002",
            id="cycle",
        ),
        pytest.param(
            [msgspec.structs.replace(task("DEV-001"), description=" \n")],
            0,
            'the description of "DEV-001" is empty',
            id="no description",
        ),
        pytest.param([msgspec.structs.replace(task("DEV-001"), id=TaskId(""))], 0, "the id is empty", id="no id"),
        pytest.param(
            [msgspec.structs.replace(task("DEV-001"), id=TaskId("../DEV"))],
            0,
            'the id "../DEV" cannot name a branch and a file: use letters, digits and dashes',
            id="an id that is a path",
        ),
        pytest.param(
            [task("DEV-001", "DEV-9"), task("DEV-002"), task("DEV-002")],
            0,
            '"DEV-001" depends on "DEV-9", which is not in the table',
            id="the first of two bad rows",
        ),
    ],
)
def test_each_violation_has_its_own_message_and_names_its_row(rows: list[Task], number: int, message: str) -> None:
    assert checked(rows) == Fault(number, message)


@pytest.mark.requirement("R162")
@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("DEV-001,work,wizard,,,,,,,", 'line 2: role is "wizard", expected one of architect, developer'),
        ("DEV-001,work,,,,batch,,,,", 'line 2: exec_mode is "batch", expected one of csv-wave, interactive'),
        ("DEV-001,work,,,,,done,,,", 'line 2: status is "done", expected one of pending, completed, failed, skipped'),
        ("DEV-001,work,,,,,,quick,,", 'line 2: pipeline is "quick", expected one of patch, sprint, multi-sprint'),
        ("DEV-001,work,,,,,,,0,", 'line 2: the sprint_num of "DEV-001" is 0, and sprints are counted from 1'),
        ("DEV-001,work,,,,,,,,-1", 'line 2: the gc_round of "DEV-001" is -1, and rounds are counted from 0'),
    ],
)
def test_a_cell_that_is_wrong_is_refused_with_what_it_may_be(cells: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        tasks_csv.parse(f"{HEADER}\n{cells}\n", DEVELOPMENT)

    assert message in caught.value.message


def test_a_table_without_a_fault_has_its_waves() -> None:
    rows = [task("VERIFY-001", "DEV-001", context=["DEV-001"]), task("DEV-001")]

    assert waves(*rows) == {"VERIFY-001": 2, "DEV-001": 1}


@st.composite
def any_table(draw: st.DrawFn) -> list[Task]:
    """Small tables in which ids and dependencies are often wrong."""
    ids = st.sampled_from([TaskId(f"T-{number}") for number in range(8)])
    rows = []
    for number in range(draw(st.integers(1, 7))):
        name = TaskId(f"T-{number}") if draw(st.booleans()) else draw(ids)
        rows.append(
            Task(
                id=name,
                title="t",
                description=draw(st.sampled_from(("work", "work", "work", ""))),
                role=draw(st.sampled_from(Role)),
                fields=Fields(pipeline=Pipeline.sprint),
                deps=tuple(draw(st.lists(ids, max_size=2))),
                context_from=tuple(draw(st.lists(ids, max_size=1))),
            )
        )
    return rows


def is_bad(row: Task, above: list[Task], table: list[Task]) -> bool:
    known = {other.id for other in table}
    doubled = any(len(set(names)) < len(names) for names in (row.deps, row.context_from))
    return (
        row.id in {other.id for other in above}
        or not row.description
        or row.id in row.deps
        or doubled
        or not known.issuperset({*row.deps, *row.context_from})
    )


@pytest.mark.requirement("R45", "R162")
@given(any_table())
@settings(max_examples=500, derandomize=True, deadline=None)
def test_any_table_either_has_waves_or_its_first_bad_row_is_named(table: list[Task]) -> None:
    bad = [number for number, row in enumerate(table) if is_bad(row, table[:number], table)]

    found = checked(table)

    if bad:
        assert isinstance(found, Fault)
        assert found.row == bad[0]
    elif isinstance(found, Fault):
        assert is_circular(table) or takes_context_too_early(table[found.row], table)
    else:
        depth = {row.id: row.wave for row in found}
        assert all(depth[row.id] == 1 + max((depth[dep] for dep in row.deps), default=0) for row in table)
        assert all(depth[source] < depth[row.id] for row in table for source in row.context_from)


def is_circular(table: list[Task]) -> bool:
    try:
        depths({row.id: row.deps for row in table})
    except CycleError:
        return True
    return False


def takes_context_too_early(row: Task, table: list[Task]) -> bool:
    depth = depths({other.id: other.deps for other in table})
    return any(depth[source] >= depth[row.id] for source in row.context_from)
