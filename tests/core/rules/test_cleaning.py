"""Why refs of a session are kept."""

from tests.core.conftest import Story

from iterdev.core.rules.cleaning import RefFacts, reason_to_keep
from iterdev.core.session import events
from iterdev.core.session.delivery import Accepted
from iterdev.core.session.summary import summarize

REF = RefFacts(name="refs/heads/iterdev/x", session="x", commit="c1", contained=True)


def test_a_session_that_was_accepted_and_is_kept_active_is_not_called_unaccepted() -> None:
    story = Story()
    story.happens(events.Finished())
    before = reason_to_keep(REF, summarize(story.state), running=False, accepted=False)

    state = story.happens(Accepted("main", "c1"), events.Kept())

    assert before == "the session is neither archived nor accepted"
    assert reason_to_keep(REF, summarize(state), running=False, accepted=False) == (
        "the session was accepted, and is kept active"
    )
