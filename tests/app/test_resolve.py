"""Requests to resolve issues: which issues they name, what becomes of them, and how the tracker follows."""

import pytest
from tests.conftest import Repo

from iterdev.app.issues import edit
from iterdev.app.issues.resolve import Words, find_issues, known_ids, read_words, start_resolving
from iterdev.app.start import Request
from iterdev.core.errors import HostError, UserError
from iterdev.engine.repository import Repository
from iterdev.teams.issues.state import issue_part


@pytest.mark.requirement("R144", "R145")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GH-42", Words(text="GH-42", ids=("GH-42",))),
        (
            "fix GH-1, ISS-20260308-120000 and GH-1",
            Words(text="fix GH-1, ISS-20260308-120000 and GH-1", ids=("GH-1", "ISS-20260308-120000")),
        ),
        ("--all-pending --mode=batch", Words(text="", mode="batch", all_pending=True)),
        ("GH-7 --exec=codex", Words(text="GH-7", ids=("GH-7",), method="codex")),
        ("see --all-pending-things in ISS-2026-1", Words(text="see --all-pending-things in ISS-2026-1")),
    ],
)
def test_a_request_names_issues_anywhere_and_may_have_flags_in_its_text(text: str, expected: Words) -> None:
    assert read_words(text) == expected


def test_an_unknown_mode_in_the_text_is_refused_with_the_modes() -> None:
    with pytest.raises(UserError, match='"ful" is not a mode') as caught:
        read_words("GH-1 --mode=ful")

    assert caught.value.hint == "one of: quick, full, batch"


def test_the_ids_of_imported_issues_are_recognised_as_whole_words(repo: Repo) -> None:
    repository = Repository(repo.path)
    edit.create(repository, {"title": "Imported", "id": "TM-1"})

    assert known_ids(repository, read_words("see TM-1, GH-3 and TM-12.")) == ("TM-1", "GH-3")


@pytest.mark.requirement("R148")
@pytest.mark.parametrize(
    ("settings", "named", "builder"),
    [
        ("", None, "gemini"),
        ('[run]\nagent = "claude"', None, "claude"),
        ('[roles.implementer]\nagent = "qwen"', None, "qwen"),
        ('[run]\nagent = "claude"', "codex", "codex"),
    ],
)
def test_who_builds_is_named_by_the_option_the_configuration_or_else_gemini(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, settings: str, named: str | None, builder: str
) -> None:
    programs = repo.home / "bin"
    programs.mkdir()
    for name in ("claude", "codex", "gemini", "qwen"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{repo.env['PATH']}")
    repo.write("iterdev.toml", settings)
    repository = Repository(repo.path)
    issue = edit.create(repository, {"title": "Broken"})

    session = start_resolving(repository, Request(requirement=issue.id), [issue], named)

    state = repository.state(session)
    assert (state.session.agents.get("implementer") or repository.settings.agent_for("implementer")) == builder
    assert issue_part(state).method == (named or "gemini")


def test_both_agents_that_auto_stands_for_are_looked_for_before_anything_is_spent(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    repository = Repository(repo.path)
    issue = edit.create(repository, {"title": "Broken"})

    with pytest.raises(HostError, match="codex"):
        start_resolving(repository, Request(requirement=issue.id), [issue], "auto")

    assert repository.sessions() == []


@pytest.mark.requirement("R145", "R158")
def test_issues_that_nobody_has_begun_are_pending_and_unknown_ids_are_told(repo: Repo) -> None:
    repository = Repository(repo.path)
    waiting = edit.create(repository, {"title": "Waiting"})
    edit.create(repository, {"title": "Done", "status": "completed", "id": "GH-2"})

    found = find_issues(repository, ("GH-2", "GH-3"), all_pending=True)

    assert [issue.id for issue in found.issues] == ["GH-2", waiting.id]
    assert found.missing == ("GH-3",)
