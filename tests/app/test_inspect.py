"""Reading the sessions of a repository."""

from tests.app.conftest import Sessions, failed

from iterdev.app import completion, inspect
from iterdev.core.session import events
from iterdev.core.session.gates import plan_gate
from iterdev.core.views.attention import NeedKind


def test_what_needs_the_user_is_collected_from_all_sessions_that_are_not_decided(sessions: Sessions) -> None:
    broken = sessions.start("Fix it", *failed())
    asking = sessions.start("Ask me", events.GateOpened(plan_gate()))
    completion.archive(sessions.repository, sessions.start("Forget it", *failed()))
    sessions.start("Take it", *failed(), events.Accepted("main", "c" * 40))

    found = inspect.needs(sessions.repository)

    assert [(need.kind, need.session) for need in found] == [(NeedKind.question, asking), (NeedKind.failed, broken)]
