"""What becomes of a finished session."""

import pytest
from tests.app.conftest import Sessions, failed

from iterdev.app import completion
from iterdev.app.answer import answer
from iterdev.core.errors import UserError
from iterdev.core.session.gates import CompletionChoice
from iterdev.core.types import Phase


def test_a_session_that_is_not_finished_is_neither_archived_nor_exported(sessions: Sessions) -> None:
    session = sessions.start()

    with pytest.raises(UserError, match="is not finished"):
        completion.archive(sessions.repository, session)
    with pytest.raises(UserError, match="is not finished"):
        completion.export(sessions.repository, session, sessions.repo.home / "out")


def test_the_question_offers_a_retry_only_after_failures(sessions: Sessions) -> None:
    session = sessions.start("Fix it", *failed())

    question = completion.question(sessions.repository, session)

    assert question
    assert question.choices == ("retry", "keep", "archive", "export")


def test_the_question_is_not_asked_when_the_answer_is_known(sessions: Sessions) -> None:
    auto = sessions.start("Fix it", *failed(), auto=True)
    archived = sessions.start("Fix that", *failed())
    completion.archive(sessions.repository, archived)

    assert completion.question(sessions.repository, auto) is None
    assert completion.question(sessions.repository, archived) is None


@pytest.mark.parametrize(
    ("choice", "problem"),
    [("export", '"export" is a command of its own'), ("retry", "a command of its own"), ("burn", '"burn" is not an')],
)
def test_only_what_needs_nothing_more_can_be_answered(sessions: Sessions, choice: str, problem: str) -> None:
    session = sessions.start("Fix it", *failed())

    with pytest.raises(UserError, match=problem):
        answer(sessions.repository, session, "completion", choice)


def test_an_answer_is_carried_out_at_once(sessions: Sessions) -> None:
    session = sessions.start("Fix it", *failed())

    archived = answer(sessions.repository, session, "completion", "archive").view
    reopened = completion.reopen(sessions.repository, session)
    kept = answer(sessions.repository, session, "completion", "keep").view

    assert (archived.phase, reopened.why, kept.why) == (Phase.archived, "kept active", "kept active")
    assert sessions.kinds(session)[-2:] == ["Archived", "Reopened"]


def test_a_session_is_kept_when_its_export_fails(sessions: Sessions) -> None:
    session = sessions.start("Fix it", *failed())
    target = sessions.repo.home / "taken"
    target.write_text("a file")

    view, failure = completion.complete(sessions.repository, session, CompletionChoice.export, target)

    assert failure
    assert (failure.choice, "already exists" in failure.error) == ("export", True)
    assert view.why == "kept active"


def test_an_export_takes_nothing_along_that_is_outside_of_the_session(sessions: Sessions) -> None:
    session = sessions.start("Fix it", *failed())
    repository, secret = sessions.repository, sessions.repo.home / "secret.txt"
    secret.write_text("mine")
    folder = repository.folder(repository.state(session))
    (folder / "wisdom").mkdir(parents=True, exist_ok=True)
    (folder / "wisdom" / "more.md").symlink_to(secret)
    (folder / "discoveries.ndjson").unlink(missing_ok=True)
    (folder / "discoveries.ndjson").symlink_to(secret)

    completion.export(repository, session, sessions.repo.home / "out")

    exported = [sessions.repo.home / "out" / name for name in ("wisdom/more.md", "discoveries.ndjson")]
    assert [path.is_symlink() for path in exported] == [True, True]


@pytest.mark.parametrize(("action", "phase"), [("auto_archive", Phase.archived), ("auto_keep", Phase.paused)])
def test_the_configuration_may_complete_a_session_without_a_question(
    sessions: Sessions, action: str, phase: Phase
) -> None:
    with (sessions.repo.path / "iterdev.toml").open("a") as file:
        file.write(f'\n[session]\ncompletion_action = "{action}"\n')
    session = sessions.start("Fix it", *failed())
    repository = sessions.open()

    failure = completion.complete_as_configured(repository, session)

    assert failure is None
    assert repository.state(session).lifecycle.phase is phase
    assert completion.question(repository, session) is None
