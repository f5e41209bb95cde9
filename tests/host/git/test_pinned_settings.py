"""Settings of a repository that change while an engine runs, with real git."""

from pathlib import Path

from tests.conftest import Repo

from iterdev.host.git import worktrees
from iterdev.host.git.pinned_settings import pinned


def test_a_filter_that_is_added_or_changed_is_not_used(project: Repo, tree: Path) -> None:
    project.git("config", "filter.old.clean", "tr a-z A-Z")
    (tree / ".gitattributes").write_text("*.old filter=old\n*.new filter=new\n", encoding="utf-8")
    (tree / "a.old").write_text("old\n", encoding="utf-8")
    (tree / "a.new").write_text("new\n", encoding="utf-8")

    with pinned(project.path):
        project.git("config", "filter.old.clean", "echo evil")
        project.git("config", "filter.new.clean", "echo evil")
        written = worktrees.write_tree(tree)

    assert project.git("show", f"{written}:a.old") == "OLD"
    assert project.git("show", f"{written}:a.new") == "new"


def test_what_changed_is_told_once_by_its_name(project: Repo) -> None:
    with pinned(project.path) as settings:
        before = settings.changes()
        project.git("config", "remote.origin.url", "https://user:secret@example.invalid/x")
        project.git("config", "branch.main.remote", "origin")
        (project.path / ".git" / "hooks").mkdir(exist_ok=True)
        (project.path / ".git" / "hooks" / "pre-push").write_text("#!/bin/sh\n", encoding="utf-8")
        changed, again = settings.changes(), settings.changes()

    assert (before, changed, again) == ([], ["hook pre-push", "remote.origin.url"], [])


def test_afterwards_the_settings_count_as_they_are(project: Repo, tree: Path) -> None:
    with pinned(project.path):
        project.git("config", "filter.new.clean", "tr a-z A-Z")
    (tree / ".gitattributes").write_text("*.new filter=new\n", encoding="utf-8")
    (tree / "a.new").write_text("new\n", encoding="utf-8")

    assert project.git("show", f"{worktrees.write_tree(tree)}:a.new") == "NEW"
