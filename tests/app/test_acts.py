"""What a dashboard can do: the command that does the same, the preview, and what comes of it."""

import shlex

import pytest
from tests.app.conftest import DEV, Sessions, Team, failed

from iterdev.app.live.acts import (
    Accept,
    Act,
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
    command,
    perform,
    preview,
)
from iterdev.core.errors import IterdevError, UserError
from iterdev.core.session import events
from iterdev.core.session.gates import plan_gate
from iterdev.core.types import SessionId
from iterdev.core.views.previews import (
    AcceptPreview,
    ArchivePreview,
    CleanPreview,
    ExportPreview,
    PullRequestPreview,
    ReopenPreview,
    RetryPreview,
    RollbackPreview,
)
from iterdev.surfaces.cli.app import app

S = SessionId("ids-x")
ACTS: list[tuple[Act, str]] = [
    (Answer(session=S, gate="plan", choice="approve"), "iterdev answer ids-x plan approve"),
    (Accept(session=S), "iterdev accept ids-x"),
    (Accept(session=S, force=True), "iterdev accept ids-x --force"),
    (Retry(session=S), "iterdev retry --detach ids-x"),
    (RollBack(session=S, target="DEV-001"), "iterdev rollback ids-x DEV-001"),
    (RollBack(session=S, target="DEV-001", reason="too odd"), "iterdev rollback ids-x DEV-001 --reason 'too odd'"),
    (Archive(session=S), "iterdev archive ids-x"),
    (Reopen(session=S), "iterdev reopen ids-x"),
    (Clean(session=S), "iterdev clean ids-x"),
    (Export(session=S, path="../the result"), "iterdev export ids-x '../the result'"),
    (OpenPullRequest(session=S, is_draft=True), "iterdev pr ids-x --draft"),
    (Resume(session=S), "iterdev resume --detach ids-x"),
    (
        Broadcast(session=S, text="it stays"),
        "iterdev team broadcast --session-id ids-x --from user --summary 'it stays'",
    ),
    (
        Comment(session=S, text="$(rm -rf x)", severity="high"),
        "iterdev feedback add --session-id ids-x --severity high '$(rm -rf x)'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("act", "text"), ACTS, ids=lambda value: type(value).__name__)
def test_each_act_has_a_command_that_can_be_pasted(act: Act, text: str) -> None:
    assert command(act) == text


@pytest.mark.parametrize("act", [act for act, _ in ACTS], ids=lambda act: type(act).__name__)
def test_the_options_of_these_commands_exist(act: Act) -> None:
    _, name, *words = shlex.split(command(act))
    found = app.get_command(app.make_context("iterdev", ["--help"], resilient_parsing=True), name)
    if hasattr(found, "commands"):
        found = found.commands[words[0]]

    known = {spelling for parameter in found.params for spelling in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_what_changes_more_than_it_says_has_a_preview(team: Team) -> None:
    team.run(pipeline="patch")
    session = team.session
    acts = (
        Accept(session=session),
        Retry(session=session),
        RollBack(session=session, target=DEV),
        Archive(session=session),
        Reopen(session=session),
        Clean(session=session),
        Export(session=session, path="../out"),
        OpenPullRequest(session=session),
    )

    previews = [preview(team.repository, act) for act in acts]

    kinds = [AcceptPreview, RetryPreview, RollbackPreview, ArchivePreview, ReopenPreview, CleanPreview]
    assert [type(one) for one in previews] == [*kinds, ExportPreview, PullRequestPreview]
    assert preview(team.repository, Comment(session=session, text="fine")) is None


def test_work_is_accepted_commented_rolled_back_and_archived(team: Team) -> None:
    team.run(pipeline="patch")
    session, repository = team.session, team.repository

    accepted = perform(repository, Accept(session=session))
    commented = perform(repository, Comment(session=session, text="too long", task=DEV, severity="high"))
    undone = perform(repository, RollBack(session=session, target=DEV))

    state = repository.state(session)
    assert accepted.text.startswith(f"main is now at {team.repo.git('rev-parse', 'main')[:12]}")
    assert state.feedback[0].source_task_id == DEV
    assert commented.commands[1] == f"iterdev feedback link {session} {state.feedback[0].feedback_id} {DEV}"
    assert "undone: DEV-001, VERIFY-001; main keeps it, undo it there with: git" in undone.text


def test_a_finished_session_is_archived(team: Team) -> None:
    team.run(pipeline="patch")

    done = perform(team.repository, Archive(session=team.session))

    assert done.commands == (f"iterdev archive {team.session}",)
    assert team.repository.state(team.session).lifecycle.phase == "archived"


def test_an_archived_session_is_reopened_and_an_accepted_one_cleaned(team: Team) -> None:
    team.run(pipeline="patch")
    session, repository = team.session, team.repository
    perform(repository, Accept(session=session))
    perform(repository, Archive(session=session))

    reopened = perform(repository, Reopen(session=session))
    phase = repository.state(session).lifecycle.phase
    perform(repository, Archive(session=session))
    cleaned = perform(repository, Clean(session=session))

    assert (reopened.commands, phase) == ((f"iterdev reopen {session}",), "paused")
    assert cleaned.text.endswith(f"with: iterdev clean --undo {session}")
    assert team.repo.git("for-each-ref", "refs/heads/iterdev", "refs/iterdev") == ""


def test_what_a_session_made_is_exported_as_its_preview_says(team: Team) -> None:
    team.run(pipeline="patch")
    session, repository, out = team.session, team.repository, team.repo.path.parent / "out"
    act = Export(session=session, path="../out")

    shown = preview(repository, act)
    nothing = out.exists()
    done = perform(repository, act)
    again = preview(repository, act)

    assert isinstance(shown, ExportPreview)
    assert isinstance(again, ExportPreview)
    assert (nothing, shown.refused, shown.command) == (False, None, f"iterdev export {session} {out}")
    assert {path.name for path in out.iterdir()} == set(shown.names)
    assert done.text == f"what {session} made is in {out}, and the session is archived"
    assert again.refused
    assert "already exists" in again.refused.problem


def test_a_pull_request_is_shown_before_it_is_opened_and_refused_without_a_remote(team: Team) -> None:
    team.run("Greet the world", pipeline="patch")
    session, repository = team.session, team.repository
    act = OpenPullRequest(session=session, is_draft=True)

    alone = preview(repository, act)
    team.repo.git("remote", "add", "origin", "https://github.com/o/r")
    shown = preview(repository, act)

    assert isinstance(alone, PullRequestPreview)
    assert isinstance(shown, PullRequestPreview)
    assert alone.refused
    assert alone.refused.problem == "It is not known where to push to"
    assert (shown.refused, shown.base, shown.title) == (None, "main", "Greet the world")
    assert shown.command == f"iterdev pr {session} --draft"
    assert "Greet the world" in shown.body


def test_a_message_of_the_user_goes_to_all_roles(sessions: Sessions) -> None:
    session = sessions.start()

    done = perform(sessions.repository, Broadcast(session=session, text="the old endpoint stays"))

    message = sessions.state(session).messages.sent[-1]
    assert (message.sender, message.to, message.summary) == ("user", "all", "[user] the old endpoint stays")
    assert done.text == f"{message.id} was sent to all roles"
    with pytest.raises(UserError, match="The message is empty"):
        perform(sessions.repository, Broadcast(session=session, text=" "))
    with pytest.raises(UserError, match="characters"):
        perform(sessions.repository, Broadcast(session=session, text="x" * 1_000_000))


def test_an_answer_says_how_to_go_on_where_no_engine_waits_for_it(sessions: Sessions) -> None:
    session = sessions.start("Fix it", events.GateOpened(plan_gate()))

    done = perform(sessions.repository, Answer(session=session, gate="plan", choice="approve"))

    assert done.text == f"plan: approve; continue with: iterdev resume --detach {session}"


def test_what_the_command_would_refuse_is_refused(sessions: Sessions) -> None:
    session = sessions.start("Fix it", *failed())

    with pytest.raises(UserError, match="has changed nothing"):
        perform(sessions.repository, Accept(session=session, force=True))
    with pytest.raises(IterdevError):
        perform(sessions.repository, RollBack(session=session, target="DEV-009"))
