"""Kill points on both sides: wherever a host or an engine is killed, the work lands once, and no agent is doubled.

Each kind of effect is tried once, before it or after it; `make host-kills` tries all kill points.
"""

import pytest
from tests.conftest import Repo
from tests.execution.temporal.kill_matrix import (
    ENGINE,
    HOST,
    NEXT_HOST,
    WITH_SUPERVISOR,
    KillPoint,
    passed_effects,
    problems,
)
from tests.temporal_server import TemporalServer

pytestmark = pytest.mark.temporal

OF_HOST = {
    "note order": "before",
    "begin lease": "after",
    "fetch commits": "before",
    "borrow workspace": "after",
    "set up workspace": "before",
    "ask agent": "after",
    "commit": "before",
    "return workspace": "before",
    "run tests": "after",
    "keep report": "after",
    "push work": "before",
    "report": "after",
    "forget order": "before",
}
"""All of its effects."""
OF_ENGINE = {
    "record AttemptStarted": "after",
    "publish": "after",
    "submit": "before",
    "fetch work": "after",
    "write documents": "after",
    "record AttemptEnded": "before",
    "land": "after",
}
"""Those that are about attempts elsewhere."""
AS_EVERYWHERE = {"open branch", "write folder", "close workspaces", "release session"}
"""Effects of every engine, which tests/crash has too; and `record` of other events."""
POINTS = (
    *(KillPoint(HOST, when, effect) for effect, when in OF_HOST.items()),
    *(KillPoint(WITH_SUPERVISOR, *one) for one in (("after", "ask agent"), ("after", "commit"))),
    *(KillPoint(NEXT_HOST, *one) for one in (("after", "keep leftover work"), ("before", "push work"))),
    *(KillPoint(ENGINE, when, effect) for effect, when in OF_ENGINE.items()),
    KillPoint(ENGINE, "after", "submit"),
)


def test_an_undisturbed_session_passes_no_other_effects(repo: Repo, server: TemporalServer) -> None:
    passed = passed_effects(repo, server)

    assert set(passed.of_host) == set(OF_HOST)
    assert set(OF_ENGINE) <= set(passed.of_engine)
    others = {effect for effect in passed.of_engine if not effect.startswith("record ")} - set(OF_ENGINE)
    assert others == AS_EVERYWHERE


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_a_kill_at_any_kind_of_effect_loses_and_doubles_nothing(
    repo: Repo, server: TemporalServer, point: KillPoint
) -> None:
    assert problems(repo, server, point) == []
