"""Merges that are begun in a worktree, finished by somebody, and then looked at."""

from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.host.conftest import label
from tests.host.git.test_landing import parents, shell, show

from iterdev.core.session.conflicts import FinishedMerge
from iterdev.host.git import landing, merge, refs, worktrees

SETTINGS = (
    *(("merge.conflictStyle", "diff3"), ("merge.ff", "only"), ("rerere.enabled", "true")),
    ("merge.verifySignatures", "true"),
)


class Collision:
    """A worktree at a tip, and another commit whose change of README.md collides with that of the tip."""

    def __init__(self, project: Repo, tree: Path, base: str) -> None:
        self.project, self.tree = project, tree
        project.write("clean.txt", "1\n2\n3\n4\n5\n")
        project.write("gone.txt", "here\n")
        project.write("told.md", "start\n")
        common = project.commit("more")
        project.write("README.md", "# Tip\n")
        project.write("clean.txt", "one\n2\n3\n4\n5\n")
        project.write("told.md", "start\n<<<<<<< HEAD\n")
        self.tip = project.commit("tip")
        project.git("checkout", "-q", "-b", "other", common)
        project.write("README.md", "# Other\n")
        project.write("clean.txt", "1\n2\n3\n4\nfive\n")
        project.write("told.md", "begin\n")
        project.write("added.txt", "added\n")
        (project.path / "gone.txt").unlink()
        self.other = project.commit("other")
        project.git("checkout", "-q", "main")
        merge.begin(project.path, tree, self.tip, self.other, label().author)

    def keep(self) -> str:
        commit = landing.keep(self.project.path, self.tree, self.tip, label(), merged=self.other)
        assert commit
        return commit

    def finished(self) -> FinishedMerge:
        return merge.finished(self.project.path, self.tip, self.other, self.keep())


TOGETHER = "printf '# Tip\\n# Other\\n' > README.md; printf 'begin\\n<<<<<<< HEAD\\n' > told.md"


@pytest.fixture
def collision(project: Repo, tree: Path, base: str) -> Collision:
    return Collision(project, tree, base)


def test_what_git_can_merge_is_in_and_what_it_cannot_is_marked(collision: Collision) -> None:
    tree = collision.tree

    assert (tree / "clean.txt").read_text() == "one\n2\n3\n4\nfive\n"
    assert (tree / "added.txt").read_text() == "added\n"
    assert not (tree / "gone.txt").exists()
    marks = f"<<<<<<< HEAD\n# Tip\n=======\n# Other\n>>>>>>> {collision.other}\n"
    assert (tree / "README.md").read_text() == marks


def test_settings_of_the_user_change_nothing_about_a_merge(project: Repo, tree: Path, base: str) -> None:
    for name, value in SETTINGS:
        project.git("config", name, value)
    project.git("config", "--global", "--unset", "user.email")
    project.git("config", "--global", "user.useConfigOnly", "true")
    project.env |= {f"GIT_{who}_EMAIL": "tester@example.invalid" for who in ("AUTHOR", "COMMITTER")}

    collision = Collision(project, tree, base)

    assert "|||||||" not in (tree / "README.md").read_text()
    assert not list((project.path / ".git" / "rr-cache").iterdir())
    assert collision.keep()


def test_files_that_setting_up_left_are_not_in_the_way(collision: Collision) -> None:
    shell(collision.tree, "git merge --abort; echo mine > added.txt; echo mine > clean.txt")

    merge.begin(collision.project.path, collision.tree, collision.tip, collision.other, label().author)

    assert (collision.tree / "added.txt").read_text() == "added\n"


@pytest.mark.parametrize(
    "way",
    [
        TOGETHER,
        f"{TOGETHER}; git add -A; git commit -q --no-edit",
        f"{TOGETHER}; git add -A; git merge --continue",
        f"git merge --abort; git merge -q other || {{ {TOGETHER}; git commit -qam merged; }}",
        f"{TOGETHER}; git add -A; git merge --quit; git commit -qm plain",
        f"git checkout -q -f -B mine; git merge -q other || {{ {TOGETHER}; }}",
    ],
    ids=["written", "committed", "continued", "merged again", "committed without the other", "on a branch"],
)
def test_however_it_was_finished_both_commits_are_parents(
    collision: Collision, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_EDITOR", "true")
    shell(collision.tree, way)

    commit = collision.keep()

    assert merge.finished(collision.project.path, collision.tip, collision.other, commit) == FinishedMerge()
    assert show(collision.project, commit, "README.md") == "# Tip\n# Other"
    assert all(refs.is_ancestor(collision.project.path, old, commit) for old in (collision.tip, collision.other))
    landed = landing.land(collision.project.path, commit, label(), worked_on=collision.tip, tip=collision.tip)
    assert landed.tip == commit


def test_a_merge_without_a_change_of_files_is_a_commit_too(project: Repo, tree: Path, base: str) -> None:
    project.write("a.txt", "a\n")
    other = project.commit("a")
    project.git("reset", "-q", "--hard", base)
    project.write("a.txt", "a\n")
    tip = project.git("commit-tree", f"{other}^{{tree}}", "-p", base, "-m", "the same")
    merge.begin(project.path, tree, tip, other, label().author)

    commit = landing.keep(project.path, tree, tip, label(), merged=other)

    assert parents(project, str(commit)) == [tip, other]


def test_markers_that_are_left_are_found_where_they_are(collision: Collision) -> None:
    shell(collision.tree, "sed -i /=======/d README.md; printf 'begin\\n<<<<<<< HEAD\\n' > told.md")

    assert collision.finished() == FinishedMerge(marked={"README.md": (1, 4)})


def test_an_agent_that_does_nothing_leaves_all_markers(collision: Collision) -> None:
    assert collision.finished().marked.keys() == {"README.md", "told.md"}


def test_what_git_had_merged_must_not_be_lost(collision: Collision) -> None:
    shell(collision.tree, f"{TOGETHER}; rm added.txt; git checkout -q HEAD -- clean.txt gone.txt")

    assert collision.finished() == FinishedMerge(dropped=("added.txt", "clean.txt", "gone.txt"))


def test_what_git_had_merged_may_be_adapted(collision: Collision) -> None:
    shell(collision.tree, f"{TOGETHER}; echo more >> added.txt; echo more >> clean.txt")

    assert collision.finished() == FinishedMerge()


def test_a_file_in_conflict_that_has_only_one_of_the_changes_is_named(collision: Collision) -> None:
    shell(collision.tree, f"{TOGETHER}; echo '# Tip' > README.md")
    assert collision.finished() == FinishedMerge(without=("README.md",))

    shell(collision.tree, "echo '# Other' > README.md")
    assert collision.finished() == FinishedMerge(replaced=("README.md",))


def test_of_a_file_that_one_side_removed_either_side_may_be_taken(project: Repo, tree: Path, base: str) -> None:
    project.git("rm", "-q", "README.md")
    tip = project.commit("removed")
    project.git("checkout", "-q", "-b", "other", base)
    project.write("README.md", "# Other\n")
    other = project.commit("changed")
    for way in ("rm -f README.md", "echo '# Other' > README.md"):
        merge.begin(project.path, tree, tip, other, label().author)
        shell(tree, way)
        commit = str(landing.keep(project.path, tree, tip, label(), merged=other))

        assert merge.finished(project.path, tip, other, commit) == FinishedMerge()


def test_a_merge_that_was_not_changed_is_as_begun(collision: Collision) -> None:
    assert merge.is_as_begun(collision.project.path, collision.tree, collision.tip)

    merge.begin(collision.project.path, collision.tree, collision.tip, collision.other, label().author)
    shell(collision.tree, "echo half > README.md")
    assert not merge.is_as_begun(collision.project.path, collision.tree, collision.tip)


def test_a_worktree_is_not_merging_any_more_when_it_is_used_again(collision: Collision) -> None:
    worktrees.reset(collision.project.path, collision.tree, collision.tip)
    assert worktrees.is_untouched(collision.tree, collision.tip)
    shell(collision.tree, "! git rev-parse -q --verify MERGE_HEAD")

    merge.begin(collision.project.path, collision.tree, collision.tip, collision.other, label().author)
    shell(collision.tree, TOGETHER)
    commit = collision.keep()
    worktrees.set_head(collision.project.path, collision.tree, commit)
    assert worktrees.is_untouched(collision.tree, commit)
    shell(collision.tree, "! git rev-parse -q --verify MERGE_HEAD")


def test_half_a_merge_is_kept_like_other_work(collision: Collision) -> None:
    shell(collision.tree, "echo '# Half' > README.md; touch $(git rev-parse --git-dir)/index.lock")

    kept = landing.keep_interrupted(collision.project.path, collision.tree, collision.tip, label())

    assert show(collision.project, kept, "README.md") == "# Half"
    assert show(collision.project, kept, "added.txt") == "added"
