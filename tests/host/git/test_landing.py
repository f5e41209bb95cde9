import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from tests.conftest import Repo
from tests.host.conftest import contents, label

from iterdev.core.types import SessionId
from iterdev.host.git import landing, refs, session_branch, worktrees
from iterdev.host.git.commits import changed_files, commit_tree

SESSION = SessionId("ids-demo")
BRANCH = "iterdev/ids-demo"
REF = "refs/iterdev/ids-demo/DEV-001/1"


def shell(tree: Path, script: str) -> None:
    """What an agent does in its worktree."""
    done = subprocess.run(["sh", "-e", "-c", script], cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def files(repo: Repo, commit: str | None) -> dict[str, str]:
    """Every path of a commit, with its mode and kind."""
    assert commit
    lines = repo.git("ls-tree", "-r", "-z", commit).split("\0")
    return {line.split("\t", 1)[1]: line.split()[0] for line in lines if line}


def show(repo: Repo, commit: str | None, name: str) -> str:
    return repo.git("show", f"{commit}:{name}")


def parents(repo: Repo, commit: str) -> list[str]:
    return repo.git("log", "-1", "--format=%P", commit).split()


def work(repo: Repo, base: str, name: str, text: str = "text\n") -> str:
    """A commit on the base that adds or changes one file, made without a checkout."""
    index = {**repo.env, "GIT_INDEX_FILE": str(repo.home / f"index-{hash((base, name, text))}")}

    def run(*args: str, stdin: str = "") -> str:
        done = subprocess.run(
            ["git", *args], cwd=repo.path, env=index, input=stdin, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    run("read-tree", base)
    blob = run("hash-object", "-w", "--stdin", stdin=text)
    run("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    return commit_tree(repo.path, run("write-tree"), [base], f"add {name}", label().author)


def removal(repo: Repo, base: str) -> str:
    """A commit on the base that has no files at all."""
    empty = subprocess.run(["git", "mktree"], input="", cwd=repo.path, capture_output=True, text=True, check=True)
    return commit_tree(repo.path, empty.stdout.strip(), [base], "remove everything", label().author)


def branch(repo: Repo, at: str) -> None:
    session_branch.create(repo.path, SESSION, at)


def tip(repo: Repo) -> str:
    return repo.git("rev-parse", BRANCH)


def test_an_attempt_that_changed_nothing_leaves_nothing(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "touch README.md")

    assert landing.keep(project.path, tree, base, label()) is None
    assert refs.resolve(project.path, REF) is None


def test_only_what_was_kept_late_has_a_ref(project: Repo, tree: Path, base: str) -> None:
    assert landing.keep_late(project.path, tree, base, label()) == ""

    shell(tree, "echo late > late.txt")

    assert show(project, landing.keep_late(project.path, tree, base, label()), "late.txt") == "late"


def test_changed_new_and_deleted_files_are_kept(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "echo changed > README.md; rm iterdev.toml; mkdir -p new/deep; echo new > new/deep/file")

    commit = landing.keep(project.path, tree, base, label())

    assert files(project, commit).keys() == {"README.md", "new/deep/file"}
    assert show(project, commit, "README.md") == "changed"
    assert parents(project, str(commit)) == [base]
    assert refs.resolve(project.path, REF) == commit


def test_a_commit_says_whose_work_it_is(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "echo changed > README.md")

    commit = landing.keep(project.path, tree, base, label())

    form = "--format=%an <%ae>|%s|%(trailers:unfold,separator=%x2C)"
    author, subject, trailers = project.git("log", "-1", form, str(commit)).split("|")
    assert author == "developer (mine) <developer@iterdev.invalid>"
    assert "Do DEV-001" in subject
    assert trailers == "Iterdev-Session: ids-demo,Iterdev-Task: DEV-001,Iterdev-Attempt: 1"


def test_keeping_leaves_branch_index_and_files_of_the_user_alone(project: Repo, tree: Path, base: str) -> None:
    project.write("mine.txt", "not committed\n")
    project.git("add", "mine.txt")
    before = (contents(project.path), (project.path / ".git" / "index").read_bytes(), project.git("status", "-b"))
    shell(tree, "echo changed > README.md")

    landing.keep(project.path, tree, base, label())

    after = (contents(project.path), (project.path / ".git" / "index").read_bytes(), project.git("status", "-b"))
    assert after == before


def test_keeping_twice_keeps_the_later_state(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "echo one > file")
    landing.keep(project.path, tree, base, label())
    shell(tree, "echo two > file")

    commit = landing.keep(project.path, tree, base, label())

    assert show(project, commit, "file") == "two"
    assert parents(project, str(commit)) == [base]


def test_what_stood_under_the_ref_before_gets_a_ref_of_its_own(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "echo one > file")
    first = str(landing.keep(project.path, tree, base, label()))
    shell(tree, "echo two > file")

    second = landing.keep(project.path, tree, base, label())

    kept = project.git("for-each-ref", "--format=%(refname) %(objectname)", "refs/iterdev").splitlines()
    assert kept == [f"{REF} {second}", f"{REF}-{first[:12]} {first}"]


def test_what_is_written_after_the_work_was_handed_in_is_kept_beside_it(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "echo one > file")
    handed_in = str(landing.keep(project.path, tree, base, label()))
    worktrees.set_head(project.path, tree, handed_in)
    shell(tree, "echo two > file")

    ref = landing.keep_late(project.path, tree, handed_in, label())

    assert (show(project, REF, "file"), show(project, ref, "file")) == ("one", "two")
    assert parents(project, ref) == [handed_in]


def test_commits_of_the_agent_stay_in_the_history(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "echo 1 > a; git add a; git commit -qm first; echo 2 > b; git add b; git commit -qm second")

    commit = landing.keep(project.path, tree, base, label())

    assert project.git("log", "--format=%s", f"{base}..{commit}").split() == ["second", "first"]
    assert refs.resolve(project.path, REF) == commit


def test_what_the_agent_did_not_commit_comes_on_top_of_what_it_did(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "echo 1 > a; git add a; git commit -qm first; echo 2 > b; git add b; echo 3 > c")

    commit = landing.keep(project.path, tree, base, label())

    assert project.git("log", "-1", "--format=%s", f"{commit}^") == "first"
    assert len(project.git("log", "--format=%s", f"{base}..{commit}").splitlines()) == 2
    assert {"a", "b", "c"} <= files(project, commit).keys()


def test_an_agent_may_work_on_a_branch_of_its_own(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "git checkout -qb feature; echo 1 > a; git add a; git commit -qm first; echo 2 > b")

    commit = landing.keep(project.path, tree, base, label())

    assert {"a", "b"} <= files(project, commit).keys()
    assert refs.is_ancestor(project.path, base, str(commit))


def test_the_work_of_an_agent_that_switched_to_another_branch_is_kept_on_the_base(
    project: Repo, tree: Path, base: str
) -> None:
    project.git("branch", "old", work(project, base, "old.txt"))
    project.write("new.txt", "new\n")
    newer = project.commit()
    worktrees.reset(project.path, tree, newer)
    shell(tree, "git checkout -q old; echo 1 > a; git add a; git commit -qm astray; echo 2 > b")

    commit = landing.keep(project.path, tree, newer, label())

    assert parents(project, str(commit)) == [newer]
    assert {"a", "b", "old.txt"} <= files(project, commit).keys()
    assert project.git("log", "-1", "--format=%s", f"{REF}-head") == "astray"


def test_the_work_of_an_agent_that_began_a_new_history_is_kept_on_the_base(
    project: Repo, tree: Path, base: str
) -> None:
    shell(tree, "git checkout -q --orphan fresh; echo 1 > a; git add -A; git commit -qm again; echo 2 > b")

    commit = landing.keep(project.path, tree, base, label())

    assert parents(project, str(commit)) == [base]
    assert {"README.md", "a", "b"} <= files(project, commit).keys()
    assert project.git("log", "--format=%s", f"{REF}-head") == "again"


def test_an_agent_that_began_a_new_history_without_a_commit_is_handled(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "git checkout -q --orphan fresh; git rm -rqf .; echo 1 > a")

    commit = landing.keep(project.path, tree, base, label())

    assert parents(project, str(commit)) == [base]
    assert files(project, commit).keys() == {"a"}


def test_an_agent_that_went_back_in_the_history_is_handled(project: Repo, tree: Path, base: str) -> None:
    project.write("later.txt", "later\n")
    later = project.commit()
    worktrees.reset(project.path, tree, later)
    shell(tree, f"git reset -q --hard {base}; echo 1 > a")

    commit = landing.keep(project.path, tree, later, label())

    assert parents(project, str(commit)) == [later]
    assert files(project, commit).keys() == {"README.md", "iterdev.toml", "a"}


def test_a_merge_that_the_agent_left_unfinished_is_kept_as_it_lies_there(project: Repo, tree: Path, base: str) -> None:
    project.git("branch", "other", work(project, base, "README.md", "theirs\n"))
    shell(tree, "echo ours > README.md; git commit -qam ours; git merge -q other || true")

    commit = landing.keep(project.path, tree, base, label())

    assert "<<<<<<<" in show(project, commit, "README.md")
    assert "theirs" in show(project, commit, "README.md")


def test_ignored_files_are_not_kept(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "echo '*.log' > .gitignore; touch noise.log kept.txt; mkdir -p deep; touch deep/noise.log")

    commit = landing.keep(project.path, tree, base, label())

    assert files(project, commit).keys() == {"README.md", "iterdev.toml", ".gitignore", "kept.txt"}


def test_modes_and_links_are_kept(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "echo '#!/bin/sh' > run; chmod +x run; chmod +x README.md; ln -s nowhere link; ln -s deep folder")

    modes = files(project, landing.keep(project.path, tree, base, label()))

    assert (modes["run"], modes["README.md"], modes["iterdev.toml"]) == ("100755", "100755", "100644")
    assert (modes["link"], modes["folder"]) == ("120000", "120000")


@pytest.mark.parametrize("name", ["with space", "Größe 中", "two\nlines", "-dash", '"quoted"', "*", "tab\there"])
def test_odd_names_are_kept(project: Repo, tree: Path, base: str, name: str) -> None:
    (tree / name).write_text("text\n")
    (tree / "folder").mkdir()
    (tree / "folder" / name).write_text("text\n")

    commit = landing.keep(project.path, tree, base, label())

    assert {name, f"folder/{name}"} <= files(project, commit).keys()
    assert set(changed_files(project.path, base, str(commit))) == {name, f"folder/{name}"}


def test_a_name_that_is_no_text_is_kept(project: Repo, tree: Path, base: str) -> None:
    Path(os.fsdecode(os.fsencode(tree) + b"/caf\xe9")).write_text("x")

    commit = landing.keep(project.path, tree, base, label())

    tree_of_it = subprocess.run(
        ["git", "ls-tree", "-z", str(commit)], cwd=project.path, capture_output=True, check=True
    )
    assert b"\tcaf\xe9\0" in tree_of_it.stdout


@pytest.mark.parametrize(
    "script",
    [
        "git init -q inner; echo x > inner/file",
        "git init -q inner; cd inner; echo x > file; git add file; git commit -qm inner",
        "git init -q inner; cd inner; git init -q more; echo x > file; echo x > more/file",
        "mkdir -p deep; cd deep; git init -q inner; cd inner; echo x > file; git add file; git commit -qm inner",
    ],
    ids=["without a commit", "with a commit", "in another one", "in a folder"],
)
def test_the_files_of_a_repository_inside_the_worktree_are_kept(
    project: Repo, tree: Path, base: str, script: str
) -> None:
    shell(tree, f"echo 1 > a; git add a; {script}")

    kept = files(project, landing.keep(project.path, tree, base, label()))

    inner = {name: mode for name, mode in kept.items() if "inner" in name}
    assert set(inner.values()) == {"100644"}
    assert inner.keys() == {name for name in contents(tree) if "inner" in name and (tree / name).is_file()}
    assert "a" in kept


def test_the_lock_of_a_git_that_was_killed_is_handled(project: Repo, tree: Path, base: str) -> None:
    shell(tree, 'echo 1 > a; touch "$(git rev-parse --git-path index.lock)"')

    assert "a" in files(project, landing.keep(project.path, tree, base, label()))


@pytest.mark.parametrize(
    "script",
    ["rm .git", "rm .git; git init -q", "rm .git; git init -q; git add -A; git commit -qm mine; echo 2 > b"],
    ids=["removed", "own repository", "own repository with commits"],
)
def test_an_agent_that_removed_the_link_to_its_repository_is_handled(
    project: Repo, tree: Path, base: str, script: str
) -> None:
    shell(tree, f"echo 1 > a; {script}")

    commit = landing.keep(project.path, tree, base, label())

    assert parents(project, str(commit)) == [base]
    assert {"README.md", "iterdev.toml", "a"} <= files(project, commit).keys()


@pytest.mark.parametrize(
    "script",
    [
        'echo garbage > "$admin/index"',
        'head -c 40 "$admin/index" > index; mv index "$admin/index"',
        'echo garbage > "$admin/HEAD"',
        'echo 1234567890123456789012345678901234567890 > "$admin/HEAD"',
        'rm "$admin/HEAD"',
        'echo /gone > "$admin/commondir"',
        'echo /gone/.git > "$admin/gitdir"',
        'rm -r "$admin"',
        "echo gitdir: /gone > .git",
        "printf '\\377\\000' > .git",
        "rm .git; mkdir .git",
        "rm .git; ln -s /gone .git",
        "rm .git; git init -q ../other; echo gitdir: $(realpath ../other/.git) > .git",
    ],
)
def test_work_is_kept_whatever_became_of_gits_part_of_the_worktree(
    project: Repo, tree: Path, base: str, script: str
) -> None:
    shell(tree, f"admin=$(git rev-parse --absolute-git-dir); echo 1 > a; {script}")

    left = landing.left_history(project.path, tree, base)
    commit = landing.keep(project.path, tree, base, label())

    assert left == ("1234567890" in script)
    assert parents(project, str(commit)) == [base]
    assert files(project, commit).keys() == {"README.md", "iterdev.toml", "a"}
    assert project.git("worktree", "list").count("\n") == 1


def test_without_its_link_a_worktree_does_not_spill_into_a_repository_around_it(
    project: Repo, tree: Path, base: str
) -> None:
    around = tree.parent.parent
    shell(around, "git init -q .")
    shell(tree, "echo 1 > a; rm .git")

    landing.keep(project.path, tree, base, label())

    listed = subprocess.run(["git", "ls-files"], cwd=around, capture_output=True, text=True, check=True)
    assert listed.stdout == ""


def test_a_worktree_that_the_agent_deleted_leaves_nothing_to_keep(project: Repo, tree: Path, base: str) -> None:
    shutil.rmtree(tree)

    assert landing.keep(project.path, tree, base, label()) is None


def test_what_the_agent_committed_in_a_worktree_that_was_deleted_is_kept(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "echo 1 > a; git add a; git commit -qm mine; echo 2 > a")
    shutil.rmtree(tree)

    commit = landing.keep(project.path, tree, base, label())

    assert commit == refs.resolve(project.path, REF)
    assert show(project, commit, "a") == "1"


def test_it_is_kept_although_a_link_leads_to_where_worktrees_are(project: Repo, tmp_path: Path, base: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    tree = tmp_path / "link" / "slot" / "tree"
    worktrees.add(project.path, tree, base)
    shell(tree, "echo 1 > a; git add a; git commit -qm mine")
    shutil.rmtree(tree)

    commit = landing.keep(project.path, tree, base, label())

    assert commit
    assert show(project, commit, "a") == "1"


def test_files_that_a_sparse_checkout_leaves_out_are_kept(project: Repo, tmp_path: Path) -> None:
    project.write("inside/a", "a\n")
    project.write("outside/b", "b\n")
    project.write("outside/c", "c\n")
    base, tree = project.commit(), tmp_path / "slot" / "tree"
    project.git("sparse-checkout", "set", "--cone", "inside")
    worktrees.add(project.path, tree, base)
    shell(tree, "mkdir outside new; echo changed > outside/b; echo 1 > outside/d; echo 1 > new/file; echo 1 > inside/e")

    commit = landing.keep(project.path, tree, base, label())

    expected = {"inside/e", "new/file", "outside/b", "outside/d"}
    assert commit
    assert set(changed_files(project.path, base, commit)) == expected


def test_a_file_whose_line_ends_git_would_refuse_to_change_is_kept(project: Repo, tree: Path, base: str) -> None:
    project.git("config", "core.autocrlf", "input")
    project.git("config", "core.safecrlf", "true")
    shell(tree, r"printf 'one\r\ntwo\r\n' > dos.txt; echo 1 > a")

    assert files(project, landing.keep(project.path, tree, base, label())).keys() >= {"dos.txt", "a"}


def test_the_files_of_a_worktree_that_the_repository_has_forgotten_are_kept(
    project: Repo, tree: Path, base: str
) -> None:
    shell(tree, "echo 1 > a; rm iterdev.toml")
    shutil.rmtree(project.path / ".git" / "worktrees")

    commit = landing.keep(project.path, tree, base, label())

    assert files(project, commit).keys() == {"README.md", "a"}
    assert parents(project, str(commit)) == [base]


def test_settings_and_hooks_of_the_user_do_not_stand_in_the_way(project: Repo, tree: Path, base: str) -> None:
    for hook in ("pre-commit", "commit-msg", "reference-transaction", "post-checkout", "pre-merge-commit"):
        path = project.path / ".git" / "hooks" / hook
        path.write_text("#!/bin/sh\nexit 1\n")
        path.chmod(0o755)
    for setting in ("commit.gpgsign=true", "gpg.program=false", "core.editor=false", "merge.ff=only"):
        project.git("config", *setting.split("="))
    shell(tree, "echo 1 > a")

    commit = landing.keep(project.path, tree, base, label())
    branch(project, base)
    landed = landing.land(project.path, str(commit), label(), worked_on=base, tip=base)

    assert landed.tip == commit == tip(project)


def test_work_that_was_never_kept_is_kept(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "echo 1 > a")

    commit = landing.keep_interrupted(project.path, tree, base, label())

    assert "a" in files(project, commit)
    assert refs.resolve(project.path, REF) == commit


def test_what_was_kept_is_not_committed_again(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "echo 1 > a")
    commit = landing.keep(project.path, tree, base, label())

    assert landing.keep_interrupted(project.path, tree, base, label()) == commit


def test_what_was_done_after_the_work_was_kept_is_kept_too(project: Repo, tree: Path, base: str) -> None:
    shell(tree, "echo 1 > a")
    landing.keep(project.path, tree, base, label())
    shell(tree, "echo 2 > b")

    commit = landing.keep_interrupted(project.path, tree, base, label())

    assert {"a", "b"} <= files(project, commit).keys()
    assert refs.resolve(project.path, REF) == commit


@pytest.mark.parametrize("loss", ["rm -rf .", "git checkout -qf . && git clean -qfd"])
def test_what_was_kept_and_then_undone_is_still_there(project: Repo, tree: Path, base: str, loss: str) -> None:
    shell(tree, "echo 1 > a")
    commit = landing.keep(project.path, tree, base, label())
    if loss.startswith("rm"):
        shutil.rmtree(tree)
    else:
        shell(tree, loss)

    assert landing.keep_interrupted(project.path, tree, base, label()) == commit


def test_work_on_the_tip_lands_as_it_is(project: Repo, base: str) -> None:
    branch(project, base)
    commit = work(project, base, "a")

    landed = landing.land(project.path, commit, label(), worked_on=base, tip=base)

    assert landed == landing.Landing(tip=commit)
    assert tip(project) == commit


def test_work_beside_what_landed_before_is_merged(project: Repo, base: str) -> None:
    branch(project, base)
    first, second = work(project, base, "a"), work(project, base, "b")
    landing.land(project.path, first, label("DEV-001"), worked_on=base, tip=base)

    landed = landing.land(project.path, second, label("DEV-002"), worked_on=base, tip=first)

    assert landed.tip == tip(project)
    assert parents(project, landed.tip) == [first, second]
    assert {"a", "b"} <= files(project, landed.tip).keys()
    assert project.git("log", "-1", "--format=%an|%s", landed.tip) == "developer (mine)|Merge DEV-002: Do DEV-002"


def test_landing_twice_is_one_landing(project: Repo, base: str) -> None:
    branch(project, base)
    first, second = work(project, base, "a"), work(project, base, "b")
    landing.land(project.path, first, label("DEV-001"), worked_on=base, tip=base)
    landed = landing.land(project.path, second, label("DEV-002"), worked_on=base, tip=first)

    for known in (first, landed.tip):
        assert landing.land(project.path, second, label("DEV-002"), worked_on=base, tip=known) == landed
    assert tip(project) == landed.tip


@pytest.mark.parametrize("ahead", [True, False])
def test_what_an_agent_moved_the_branch_to_does_not_land(project: Repo, base: str, *, ahead: bool) -> None:
    first, second = work(project, base, "a"), work(project, base, "b")
    branch(project, base)
    landing.land(project.path, first, label("DEV-001"), worked_on=base, tip=base)
    foreign = work(project, first if ahead else base, "foreign")
    project.git("update-ref", f"refs/heads/{BRANCH}", foreign)

    landed = landing.land(project.path, second, label("DEV-002"), worked_on=first, tip=first)

    assert landed.tip == tip(project)
    assert files(project, landed.tip).keys() == {"README.md", "iterdev.toml", "a", "b"}
    assert project.git("rev-parse", f"refs/iterdev/{SESSION}/_moved/{foreign[:12]}") == foreign
    assert foreign[:12] in landed.note


def test_a_conflict_leaves_the_branch_and_names_the_files(project: Repo, base: str) -> None:
    branch(project, base)
    first = work(project, base, "README.md", "one\n")
    second = work(project, work(project, base, "README.md", "two\n"), "fine.txt")
    landing.land(project.path, first, label(), worked_on=base, tip=base)

    landed = landing.land(project.path, second, label("DEV-002"), worked_on=base, tip=first)

    assert landed == landing.Landing(tip=first, conflicts=("README.md",))
    assert tip(project) == first


def test_a_deleted_file_that_was_changed_is_a_conflict(project: Repo, base: str) -> None:
    branch(project, base)
    first = work(project, base, "README.md", "one\n")
    landing.land(project.path, first, label(), worked_on=base, tip=base)

    landed = landing.land(project.path, removal(project, base), label("DEV-002"), worked_on=base, tip=first)

    assert (landed.tip, landed.conflicts) == (first, ("README.md",))


def test_the_subject_of_a_commit_is_one_line_whatever_the_title_is() -> None:
    forged = msgspec.structs.replace(label(), title="Do it\n\nIterdev-Task: DEV-999\n")

    subject, *rest = forged.message().splitlines()

    assert subject == "DEV-001: Do it Iterdev-Task: DEV-999"
    assert [line for line in rest if line.startswith("Iterdev-Task")] == ["Iterdev-Task: DEV-001"]
