"""What is typed behind the colon."""

import pytest

from iterdev.app.live.acts import (
    Accept,
    Answer,
    Archive,
    Broadcast,
    Clean,
    Comment,
    Export,
    OpenPullRequest,
    Reopen,
    Resume,
    Retry,
    RollBack,
)
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId
from iterdev.core.views.keys import Action
from iterdev.surfaces.tui.command_line import COMMANDS, VIEWS, Go, Typed, parse

S = SessionId("ids-x")


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("accept", Accept(session=S)),
        ("iterdev accept ids-x --force", Accept(session=S, force=True)),
        ("answer plan approve", Answer(session=S, gate="plan", choice="approve")),
        ("archive", Archive(session=S)),
        ("clean", Clean(session=S)),
        ("reopen", Reopen(session=S)),
        ("broadcast the old endpoint stays", Broadcast(session=S, text="the old endpoint stays")),
        ("export '../the result'", Export(session=S, path="../the result")),
        ("pr", OpenPullRequest(session=S)),
        ("iterdev pr ids-x --draft", OpenPullRequest(session=S, is_draft=True)),
        ("comment 'too long'", Comment(session=S, text="too long")),
        ("comment iterdev doesn't  stop", Comment(session=S, text="iterdev doesn't  stop")),
        ("resume --detach", Resume(session=S)),
        ("retry", Retry(session=S)),
        ("rollback DEV-001", RollBack(session=S, target="DEV-001")),
        ("rollback DEV-001 --reason 'it is odd'", RollBack(session=S, target="DEV-001", reason="it is odd")),
        ("diff DEV-001", Go(Action.changes, "DEV-001")),
        ("filter failed developer", Go(Action.filter, "failed developer")),
        ("quit", Go(Action.quit)),
    ],
)
def test_the_words_of_the_commands_are_understood(text: str, typed: Typed) -> None:
    assert parse(text, S) == typed


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "The command is empty"),
        ("acept", 'no command "acept" here \\(did you mean "accept"'),
        ("accept now", '"accept" does not take "now"'),
        ("rollback", '"rollback" does not take ""'),
        ("rollback 'x", "cannot be read"),
    ],
)
def test_what_is_not_understood_is_told(text: str, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        parse(text, S)


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - VIEWS.keys()))
def test_without_a_session_there_is_nothing_to_act_on(name: str) -> None:
    with pytest.raises(UserError, match="no session yet"):
        parse(name, None)
