"""Ids, slugs, and the role that an id implies."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iterdev.core import ids
from iterdev.core.types import Engine, SessionId
from iterdev.teams.development.roles import Role
from iterdev.teams.development.team import DEVELOPMENT

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC).timestamp()
LATE = datetime(2026, 3, 8, 17, tzinfo=UTC).timestamp()
"""In UTC+8 it is already the next day."""


@pytest.mark.requirement("R97")
@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("Auth JWT", "auth-jwt"),
        ("  Fix: the *login* -- button!  ", "fix-the-login-button"),
        ("Größe ändern", "grosse-andern"),
        ("Łódź, Ærø, façade, ĐỖ, İstanbul, ẞ", "lodz-aero-facade-do-istanbul-ss"),
        ("用户登录 fix", "用户登录-fix"),
        ("重构支付模块、支持 3 个网关。", "重构支付模块-支持-3-个网关"),
        ("支" * 60, "支" * 40),
        ("カタカナ", ""),
        ("!!!", ""),
        ("a" * 60, "a" * 40),
        ("x" * 39 + " y", "x" * 39),
    ],
)
def test_a_slug_keeps_letters_digits_and_chinese_characters(text: str, slug: str) -> None:
    assert ids.slug(text) == slug


@given(st.text(max_size=200))
@settings(derandomize=True)
def test_a_slug_is_short_has_single_dashes_and_none_at_its_ends(text: str) -> None:
    slug = ids.slug(text)

    assert len(slug) <= 40
    assert "--" not in slug
    assert slug == slug.strip("-")
    assert ids.slug(slug) == slug


@pytest.mark.requirement("R97")
@pytest.mark.parametrize(
    ("engine", "at", "expected"),
    [
        (Engine.wave, NOON, "ids-auth-jwt-20260308"),
        (Engine.wave, LATE, "ids-auth-jwt-20260309"),
        (Engine.beat, NOON, "IDS-auth-jwt-2026-03-08"),
    ],
)
def test_a_session_id_has_prefix_slug_and_the_date_in_utc_plus_8(engine: Engine, at: float, expected: str) -> None:
    assert ids.session_id(DEVELOPMENT.session_prefix(engine), ids.slug("Auth: JWT"), engine, at) == expected


def test_a_session_id_without_a_slug_has_no_empty_part() -> None:
    assert ids.session_id("ids", ids.slug("???"), Engine.wave, NOON) == "ids-20260308"


def test_a_second_session_of_the_same_name_and_day_gets_a_number() -> None:
    taken = {"ids-x-20260308", "ids-x-20260308-2"}

    assert ids.session_id("ids", "x", Engine.wave, NOON, taken) == "ids-x-20260308-3"


@pytest.mark.parametrize(
    ("engine", "folder"),
    [(Engine.wave, ".workflow/.csv-wave/some-id"), (Engine.beat, ".workflow/.team/some-id")],
)
def test_each_engine_keeps_its_sessions_in_its_own_folder(engine: Engine, folder: str) -> None:
    assert ids.folder(engine, SessionId("some-id")) == folder


@pytest.mark.requirement("R38")
@pytest.mark.parametrize(
    ("task", "role"),
    [
        ("DESIGN-001", Role.architect),
        ("DEV-001", Role.developer),
        ("DEV-fix-1", Role.developer),
        ("DEV-002-fix-conflict", Role.developer),
        ("VERIFY-012", Role.tester),
        ("REVIEW-2", Role.reviewer),
        ("GC-CHECK-001", Role.gc_controller),
        ("DEPLOY-001", None),
        ("DEV", None),
        ("devil-1", None),
        ("", None),
    ],
)
def test_the_prefix_of_a_task_id_names_its_role(task: str, role: Role | None) -> None:
    assert DEVELOPMENT.role_of(task) is role


@pytest.mark.requirement("R37")
@pytest.mark.parametrize(
    ("prefix", "existing", "expected"),
    [
        ("REVIEW", [], "REVIEW-001"),
        ("REVIEW", ["REVIEW-001", "DEV-007"], "REVIEW-002"),
        ("REVIEW", ["REVIEW-2"], "REVIEW-003"),
        ("REVIEW", ["REVIEW-001", "REVIEW-009", "REVIEW-draft"], "REVIEW-010"),
        ("REVIEW", ["REVIEW-999"], "REVIEW-1000"),
        ("DEV", ["DEV-fix-3", "DEV-001"], "DEV-002"),
        ("DEV-fix", ["DEV-001"], "DEV-fix-1"),
        ("DEV-fix", ["DEV-fix-1", "DEV-fix-2"], "DEV-fix-3"),
    ],
)
def test_ids_continue_one_counter_per_prefix(prefix: str, existing: list[str], expected: str) -> None:
    assert ids.next_id(prefix, existing) == expected


@pytest.mark.parametrize(("task", "number"), [("DESIGN-002", "002"), ("DEV-fix-1", "1"), ("odd", "odd")])
def test_documents_are_numbered_like_their_tasks(task: str, number: str) -> None:
    assert ids.number_of(task) == number


def test_a_moment_is_written_with_the_offset_that_is_true() -> None:
    text = ids.moment(NOON)

    assert text == "2026-03-08T20:00:00+08:00"
    assert datetime.fromisoformat(text).timestamp() == NOON


@pytest.mark.parametrize(
    ("at", "name"), [(0, "X-0"), (0.035, "X-z"), (0.036, "X-10"), (1_772_000_000.123, "X-mm1n1qpn")]
)
def test_an_id_from_a_time_is_its_milliseconds_in_base_36(at: float, name: str) -> None:
    assert ids.timed_id("X", at) == name


def test_an_id_from_a_time_that_is_taken_is_followed_by_the_next() -> None:
    assert ids.timed_id("X", 0.035, {"X-z", "X-10"}) == "X-11"


def test_a_time_before_1970_gives_ids_too() -> None:
    assert ids.timed_id("X", -86400.0, {"X-0"}) == "X-1"
