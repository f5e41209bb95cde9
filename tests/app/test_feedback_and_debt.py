"""Feedback and technical debt, added and changed by a person."""

import json

import pytest
from tests.app.conftest import Sessions

from iterdev.app import feedback, tech_debt
from iterdev.app.tech_debt import Debt
from iterdev.core.errors import UserError


@pytest.mark.requirement("R137", "R138")
def test_feedback_that_is_not_known_is_rejected_with_what_is_known(sessions: Sessions) -> None:
    repository, session = sessions.repository, sessions.start()
    item = feedback.add(repository, session, "It is red", severity="low", category="ux")

    with pytest.raises(UserError, match='"FB-none"') as unknown:
        feedback.close(repository, session, "FB-none")
    with pytest.raises(UserError, match='"DEV-009"'):
        feedback.link(repository, session, item.feedback_id, "DEV-009")

    assert item.feedback_id in unknown.value.hint
    assert feedback.items(repository, session) == (item,)
    assert feedback.link(repository, session, item.feedback_id, "DEV-001").status == "reviewed"
    assert feedback.close(repository, session, item.feedback_id).status == "closed"


def test_the_session_of_feedback_is_found_by_its_id(sessions: Sessions) -> None:
    first = sessions.start("First thing")
    sessions.start("Second thing")
    item = feedback.add(sessions.repository, first, "It is red", severity="low", category="ux")

    assert feedback.session_of(sessions.repository, item.feedback_id, None) == first
    with pytest.raises(UserError, match="No session has the feedback"):
        feedback.session_of(sessions.repository, "FB-none", None)


@pytest.mark.requirement("R140")
def test_debt_that_is_not_known_is_rejected_with_what_is_known(sessions: Sessions) -> None:
    repository, session = sessions.repository, sessions.start()
    item = tech_debt.add(repository, session, Debt(description="copied", source_task_id="DEV-001"))

    with pytest.raises(UserError, match='"TD-none"') as unknown:
        tech_debt.move(repository, session, "TD-none", "resolved")
    with pytest.raises(UserError, match='"DEV-009"'):
        tech_debt.add(repository, session, Debt(description="copied", source_task_id="DEV-009"))

    assert item.debt_id in unknown.value.hint
    assert tech_debt.items(repository, session) == (item,)
    assert tech_debt.move(repository, session, item.debt_id, "resolved").status == "resolved"


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_text_is_rejected(sessions: Sessions, text: str) -> None:
    session = sessions.start()

    with pytest.raises(UserError, match="The text is empty"):
        feedback.add(sessions.repository, session, text, severity="low", category="ux")
    with pytest.raises(UserError, match="The text is empty"):
        tech_debt.add(sessions.repository, session, Debt(description=text))


def test_without_an_engine_the_session_folder_follows(sessions: Sessions) -> None:
    session = sessions.start()

    item = feedback.add(sessions.repository, session, "It is red", severity="low", category="ux")

    folder = sessions.repository.folder(sessions.state(session))
    meta = json.loads((folder / ".msg" / "meta.json").read_text(encoding="utf-8"))
    assert [one["feedback_id"] for one in meta["user_feedback_items"]] == [item.feedback_id]
