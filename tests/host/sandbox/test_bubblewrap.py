"""Real programs in the real sandbox: what they reach, what they cannot, and how they end."""

import hashlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from tests.conftest import Repo
from tests.host.conftest import label

from iterdev.core.errors import HostError
from iterdev.host import paths
from iterdev.host.git import confinement, landing, worktrees
from iterdev.host.git.command import git
from iterdev.host.processes.spawn import ProgramResult, Supervisor, run
from iterdev.host.sandbox.bubblewrap import Access, Sandbox, build
from iterdev.host.workspaces.pool import Pool, Workspace

ASK = 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)'
SERVE = 'import socket; s = socket.create_server(("127.0.0.1", 0)); socket.create_connection(s.getsockname())'
BUILD = "import os, pathlib; from iterdev.host.sandbox.bubblewrap import build; build(pathlib.Path.cwd(), os.environ)"
SECRET = "the-key-of-the-user"

Inside = Callable[..., ProgramResult]


@pytest.fixture
def pool(project: Repo, tmp_path: Path) -> Iterator[Pool]:
    pool = Pool(project.path, tmp_path / "state" / "ids-demo", tmp_path / "state" / "tmp")
    yield pool
    pool.close()


@pytest.fixture
def workspace(pool: Pool, base: str) -> Iterator[Workspace]:
    workspace, _ = pool.borrow(base, task="DEV-001", number=1)
    yield workspace
    pool.give_back(workspace)


@pytest.fixture
def sandbox(project: Repo) -> Sandbox:
    (project.home / ".ssh").mkdir()
    (project.home / ".ssh" / "id_ed25519").write_text(SECRET, encoding="utf-8")
    return build(project.path, os.environ)


@pytest.fixture
def inside(sandbox: Sandbox, workspace: Workspace, project: Repo) -> Inside:
    return running(sandbox, workspace, project)


def running(sandbox: Sandbox, workspace: Workspace, project: Repo) -> Inside:
    """Runs a shell script in the sandbox, in the worktree."""

    def runs(
        script: str, *, write: bool = True, network: bool = True, files: tuple[str, ...] = (), **env: str
    ) -> ProgramResult:
        async def go() -> ProgramResult:
            async with Supervisor(grace=1.0) as host:
                spawn = sandbox.around(host.spawn, workspace, Access(write=write, network=network, files=files))
                env_ = {**project.env, "TMPDIR": str(workspace.temp), **env}
                return await run(spawn, ["sh", "-c", script], cwd=str(workspace.tree), env=env_, limit=60)

        return anyio.run(go)

    return runs


def said(finished: ProgramResult) -> str:
    return (finished.stdout + finished.stderr).decode()


def test_git_works_inside_with_the_objects_of_another_repository(project: Repo, tmp_path: Path, base: str) -> None:
    objects, others = project.path / ".git" / "objects", project.home / "other" / "objects"
    others.parent.mkdir()
    objects.rename(others)
    (objects / "info").mkdir(parents=True)
    (objects / "info" / "alternates").write_text(f"{others}\n", encoding="utf-8")
    sandbox = build(project.path, os.environ)
    pool = Pool(project.path, tmp_path / "state" / "ids-demo", tmp_path / "state" / "tmp", sandbox.confine_git)

    workspace, _ = pool.borrow(base, task="DEV-001", number=1)
    made = running(sandbox, workspace, project)("git cat-file -p HEAD:README.md > copy")
    commit = landing.keep(project.path, workspace.tree, base, label())
    pool.give_back(workspace)
    pool.close()

    assert commit, said(made)
    assert project.git("show", f"{commit}:copy") == project.git("show", f"{base}:README.md")


def test_the_workspace_its_temporary_folder_and_its_result_can_be_written(inside: Inside, workspace: Workspace) -> None:
    done = inside('echo a > a.txt; echo b > "$TMPDIR/b"; echo c > ../new; mv ../new ../result.json')

    assert done.code == 0, said(done)
    assert (workspace.tree / "a.txt").read_text(encoding="utf-8") == "a\n"
    assert (workspace.temp / "b").exists()
    assert workspace.result.read_text(encoding="utf-8") == "c\n"


def test_nothing_else_can_be_written(inside: Inside, project: Repo, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x", encoding="utf-8")
    targets = (project.path / "README.md", project.path / "new", tmp_path / "precious", Path("/etc/hostname"), "/new")

    for target in targets:
        inside(f"echo gone > {target}; rm -f {target}")

    assert (project.path / "README.md").read_text(encoding="utf-8") == "# Sample\n"
    assert (tmp_path / "precious").read_text(encoding="utf-8") == "x"
    assert not (project.path / "new").exists()
    assert not Path("/new").exists()


def test_removing_everything_within_reach_loses_nothing_but_the_attempt(
    inside: Inside, workspace: Workspace, project: Repo, base: str
) -> None:
    def kept() -> list[Path]:
        return sorted(path for path in project.path.rglob("*") if "worktrees" not in path.parts)

    before = kept()
    store = confinement.store(workspace.tree)

    inside(f"rm -rf {project.path} {project.home} {store.admin} . .git ../*")
    worktrees.adopt(workspace.tree, base)

    assert kept() == before
    assert (project.home / ".ssh" / "id_ed25519").exists()
    assert project.git("fsck", "--full") == ""
    assert landing.keep(project.path, workspace.tree, base, label())


def test_the_home_is_hidden_and_can_be_used_all_the_same(inside: Inside, project: Repo) -> None:
    looked = inside('cat "$HOME/.ssh/id_ed25519"; ls -A "$HOME"; cat /root/.bashrc; ls -A /tmp')
    used = inside('mkdir -p "$HOME/.cache/x" && echo kept > "$HOME/.cache/x/y"')
    again = inside('cat "$HOME/.cache/x/y"')

    assert SECRET not in said(looked)
    assert ".ssh" not in said(looked).split()
    assert used.code == 0, said(used)
    assert said(again) == "kept\n"
    assert not (project.home / ".cache").exists()


@pytest.mark.parametrize("way", ["umount $HOME", "mount -o remount,rw /", "unshare -Urm sh -c 'umount $HOME'"])
def test_what_is_hidden_cannot_be_uncovered(inside: Inside, project: Repo, way: str) -> None:
    done = inside(f"{way}; cat $HOME/.ssh/id_ed25519; echo x > {project.path}/new")

    assert SECRET not in said(done)
    assert not (project.path / "new").exists()


def test_tokens_of_web_pages_are_hidden_wherever_the_state_is(
    project: Repo, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TemporaryDirectory(dir=Path(__file__).parent) as state:
        monkeypatch.setenv("ITERDEV_HOME", state)
        sandbox = build(project.path, os.environ)
        token = paths.web_server_of(project.path) / "server.json"
        paths.make_private(token.parent)
        token.write_text(SECRET, encoding="utf-8")

        finished = running(sandbox, workspace, project)(f"cat '{token}'; ls '{paths.web_servers()}'")

    assert SECRET not in said(finished)
    assert finished.stdout == b""


def test_files_that_are_named_can_be_written_and_absent_ones_are_ignored(inside: Inside, project: Repo) -> None:
    login = project.home / ".agent"
    login.mkdir()
    (login / "token").write_text("old", encoding="utf-8")
    board = project.write("board.ndjson", "one\n")

    done = inside(
        f"cat {login}/token; echo new > {login}/token; echo two >> {board}",
        files=(str(login), str(board), str(project.home / "absent")),
    )

    assert said(done) == "old"
    assert (login / "token").read_text(encoding="utf-8") == "new\n"
    assert board.read_text(encoding="utf-8") == "one\ntwo\n"


def test_programs_that_are_installed_in_the_home_work(inside: Inside, project: Repo) -> None:
    package = project.home / ".tools" / "lib" / "node_modules" / "pack"
    package.mkdir(parents=True)
    (package / "words").write_text("hello\n", encoding="utf-8")
    (package / "cli.sh").write_text('#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/words"\n', encoding="utf-8")
    (package / "cli.sh").chmod(0o755)
    (project.home / ".tools" / "bin").mkdir()
    (project.home / ".tools" / "bin" / "greet").symlink_to("../lib/node_modules/pack/cli.sh")

    done = inside("greet; echo x > $HOME/.tools/bin/new", PATH=f"{project.home}/.tools/bin:{os.environ['PATH']}")

    assert "hello\n" in said(done)
    assert not (project.home / ".tools" / "bin" / "new").exists()


def test_iterdev_itself_works_inside(inside: Inside) -> None:
    done = inside("iterdev --version && git --version && iterdev sessions")

    assert done.code == 0, said(done)


def test_who_may_not_write_cannot(inside: Inside, workspace: Workspace, base: str) -> None:
    done = inside(
        'echo x > README.md; echo x > new; git log --oneline; git diff; echo r > "../result.json"', write=False
    )

    assert worktrees.is_untouched(workspace.tree, base)
    assert "start" in said(done)
    assert workspace.result.exists()


def test_git_looks_and_commits_and_the_commit_is_kept(
    inside: Inside, workspace: Workspace, project: Repo, base: str
) -> None:
    done = inside("git status && echo x > x.txt && git add x.txt && git commit -qm 'By the agent' && git log --oneline")
    assert done.code == 0, said(done)
    assert "By the agent" in said(done)

    worktrees.adopt(workspace.tree, base)
    commit = landing.keep(project.path, workspace.tree, base, label())

    assert commit
    assert project.git("log", "--format=%s", "-1", commit) == "By the agent"
    assert project.git("show", f"{commit}:x.txt") == "x"
    assert project.git("fsck", "--full", "--strict") == ""


def test_the_settings_of_a_repository_that_was_made_inside_start_nothing_outside(
    inside: Inside, workspace: Workspace, project: Repo, base: str, tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    done = inside(
        f"git init -q evil; cd evil; git config core.fsmonitor 'touch {proof}; false'; cd ..;"
        f"git update-index --add --cacheinfo 160000,{base},evil; echo '[submodule \"e\"] path = evil' > .gitmodules"
    )
    assert done.code == 0, said(done)

    worktrees.adopt(workspace.tree, base)
    worktrees.is_untouched(workspace.tree, base)
    landing.keep(project.path, workspace.tree, base, label())

    assert not proof.exists()


def test_what_was_only_added_to_the_index_is_kept_too(
    inside: Inside, workspace: Workspace, project: Repo, base: str
) -> None:
    inside("echo staged > x.txt && git add x.txt")

    worktrees.adopt(workspace.tree, base)
    commit = landing.keep(project.path, workspace.tree, base, label())

    assert project.git("show", f"{commit}:x.txt") == "staged"


def test_objects_that_were_packed_are_kept(inside: Inside, workspace: Workspace, project: Repo, base: str) -> None:
    done = inside("echo x > x.txt; git add x.txt; git commit -qm packed; git repack -q -d -l")
    assert done.code == 0, said(done)
    assert list((workspace.private / "objects" / "pack").glob("*.pack"))

    worktrees.adopt(workspace.tree, base)

    assert landing.keep(project.path, workspace.tree, base, label())
    assert project.git("fsck", "--full") == ""


@pytest.mark.parametrize(
    "command",
    [
        "git update-ref refs/heads/main HEAD",
        "git branch -f main HEAD",
        "git push . HEAD:main",
        "git branch mine",
        "git config user.name Evil",
        "git tag mine",
        "echo x > $(git rev-parse --git-common-dir)/hooks/post-checkout",
        "rm -rf $(git rev-parse --git-common-dir)/refs $(git rev-parse --git-common-dir)/packed-refs",
    ],
)
def test_the_users_branches_settings_and_hooks_cannot_be_changed(inside: Inside, project: Repo, command: str) -> None:
    def seen() -> tuple[str, str, list[Path]]:
        hooks = project.path / ".git" / "hooks"
        return project.git("show-ref"), project.git("config", "--local", "--list"), sorted(hooks.iterdir())

    before = seen()

    inside(f"git commit -q --allow-empty -m x; {command}")

    assert seen() == before


def test_git_of_ours_is_not_led_astray_by_what_was_written_inside(
    inside: Inside, workspace: Workspace, project: Repo
) -> None:
    evil = "mkdir evil && git init -q evil && git -C evil config core.fsmonitor 'touch /tmp/led-astray'"
    admin = "$(git rev-parse --git-dir)"
    inside(f"{evil}; echo gitdir: $PWD/evil/.git > .git; echo $PWD/evil/.git > {admin}/commondir")
    inside(f"git config -f {admin}/config.worktree core.fsmonitor 'touch /tmp/led-astray'; mv .git elsewhere")

    assert Path(git("rev-parse", "--git-common-dir", cwd=workspace.tree).stdout.strip()) == project.path / ".git"
    assert (confinement.store(workspace.tree).admin / "config.worktree").read_text(encoding="utf-8") == ""


def test_an_object_that_is_not_what_its_name_says_is_not_taken_over(
    inside: Inside, workspace: Workspace, project: Repo, base: str
) -> None:
    name = "0123456789" * 4
    store = workspace.private / "objects" / name[:2]
    inside("true")
    store.mkdir()
    shutil.copy(next((project.path / ".git" / "objects").glob("[0-9a-f][0-9a-f]/*")), store / name[2:])
    os.mkfifo(store / ("f" * 38))

    worktrees.adopt(workspace.tree, base)

    assert not (project.path / ".git" / "objects" / name[:2] / name[2:]).exists()


def test_without_the_network_only_the_loopback_of_its_own_is_there(inside: Inside) -> None:
    own = f"{sys.executable} -c '{SERVE}'"
    with socket.create_server(("127.0.0.1", 0)) as server:
        ask = f"{sys.executable} -c '{ASK}' {server.getsockname()[1]}"

        assert inside(ask, network=True).code == 0
        assert inside(ask, network=False).code != 0
        assert inside(own, network=False).code == 0


def test_children_that_were_left_behind_die_with_the_program(inside: Inside) -> None:
    mark = f"iterdev-orphan-{os.getpid()}"
    orphan = f"setsid sh -c ': {mark}; touch started; sleep 300; :' >/dev/null 2>&1 &"

    done = inside(f"({orphan}); until test -e started; do sleep 0.01; done")

    assert done.code == 0, said(done)
    assert [line for line in command_lines() if mark in line] == []


def test_a_program_that_is_asked_to_end_gets_its_grace(sandbox: Sandbox, workspace: Workspace, project: Repo) -> None:
    script = f'trap "echo saved > {workspace.tree}/saved; exit" TERM; echo up; while :; do sleep 0.02; done'

    async def ended() -> None:
        async with Supervisor(grace=20.0) as host:
            spawn = sandbox.around(host.spawn, workspace, Access(write=True, network=True))
            async with spawn(["sh", "-c", script], cwd=str(workspace.tree), env=project.env) as process:
                async for _ in process.output():
                    break

    anyio.run(ended)

    assert (workspace.tree / "saved").read_text(encoding="utf-8") == "saved\n"


def command_lines() -> list[str]:
    return [
        path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.exists()
    ]


def test_git_of_iterdev_in_a_workspace_runs_inside(
    inside: Inside, workspace: Workspace, project: Repo, base: str
) -> None:
    with (project.home / ".gitconfig").open("a", encoding="utf-8") as settings:
        settings.write('[filter "tidy"]\n\tclean = sh tidy\n')
    inside(
        f"echo '* filter=tidy' > .gitattributes; echo 'touch {project.home}/escaped ran; tr a-z A-Z' > tidy; echo x > x"
    )

    commit = landing.keep(project.path, workspace.tree, base, label())

    assert (workspace.tree / "ran").exists()
    assert project.git("show", f"{commit}:x") == "X"
    assert not (project.home / "escaped").exists()


def test_filters_run_inside_already_when_a_worktree_is_made(sandbox: Sandbox, project: Repo, tmp_path: Path) -> None:
    with (project.home / ".gitconfig").open("a", encoding="utf-8") as settings:
        settings.write('[filter "tidy"]\n\tsmudge = sh ../tree/a-tidy\n')
    project.write("a-tidy", f"touch {project.home}/escaped ran; cat\n")
    project.write("x.txt", "x\n")
    project.write(".gitattributes", "x.txt filter=tidy\n")
    commit = project.commit("a filter")
    pool = Pool(project.path, tmp_path / "other" / "ids-demo", tmp_path / "other" / "tmp", sandbox.confine_git)

    workspace, _ = pool.borrow(commit, task="DEV-001", number=1)
    ran, escaped = (workspace.tree / "ran").exists(), (project.home / "escaped").exists()
    pool.give_back(workspace)
    pool.close()

    assert (ran, escaped) == (True, False)


def test_large_files_of_git_lfs_are_imported_if_their_content_matches_their_name(
    inside: Inside, workspace: Workspace, project: Repo
) -> None:
    (project.path / ".git" / "lfs" / "objects").mkdir(parents=True)
    (project.path / ".git" / "lfs" / "objects" / "known").write_text("known", encoding="utf-8")
    store = "cd $(git rev-parse --git-common-dir)/lfs; mkdir -p objects/ab/cd; cd objects/ab/cd; "
    good, forged = hashlib.sha256(b"good").hexdigest(), "0" * 64

    done = inside(
        f"{store} printf good > {good}; printf forged > {forged}; ln -s {project.home}/.ssh/id_ed25519 {'1' * 64}"
    )
    worktrees.adopt(workspace.tree, "")

    assert done.code == 0, said(done)
    found = [path for path in (project.path / ".git" / "lfs").rglob("*") if path.is_file()]
    assert {path.name: path.read_bytes() for path in found} == {good: b"good", "known": b"known"}


def test_the_exit_code_is_that_of_the_program(inside: Inside) -> None:
    assert inside("exit 7").code == 7


def test_without_bubblewrap_there_is_an_error_with_a_hint(
    project: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(HostError, match="bubblewrap") as caught:
        build(project.path, os.environ)
    assert "apt install bubblewrap" in caught.value.hint
    assert "sandbox = false" in caught.value.hint


def test_a_machine_that_forbids_sandboxes_is_reported_with_bubblewraps_message(project: Repo) -> None:
    """Inside of a sandbox that allows no other one, as on a machine without user namespaces."""
    forbidding = ["bwrap", "--unshare-user", "--disable-userns", "--bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]

    done = subprocess.run(
        [*forbidding, sys.executable, "-c", BUILD], cwd=project.path, capture_output=True, text=True, check=False
    )

    assert "HostError: bubblewrap cannot make a sandbox on this machine: " in done.stderr
    assert "namespace" in done.stderr.splitlines()[-1]


def test_a_home_that_is_the_repository_cannot_be_hidden(project: Repo) -> None:
    with pytest.raises(HostError, match="home"):
        build(project.path, {"HOME": str(project.path)})
