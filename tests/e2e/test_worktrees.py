"""Worktrees that work: what they are given, and the same for the tests before and after the change."""

from pathlib import Path

import pytest
from msgspec import Struct
from tests.conftest import Repo, make_repo
from tests.e2e.conftest import Background, once
from tests.session_files import left_behind

PROJECT = """
test = "test -e node_modules/x.js && . ./.env && test -e config/local.toml && sh record test"
setup = "sh record setup"
ready = "sh record ready && test $(grep -c ^ready $HOME/record) -ge 3"
copy = [".env", "config"]
link = ["node_modules"]
ports = 4
"""
KNOWN = "$ITERDEV_PORT $ITERDEV_PORTS $COMPOSE_PROJECT_NAME $TMPDIR $(git rev-parse HEAD) $(pwd)"
RECORD = f'echo "$1 {KNOWN}" >> $HOME/record\n'


class Run(Struct, frozen=True):
    repo: Repo
    output: str
    left: list[str]
    base: str

    def records(self, kind: str) -> list[list[str]]:
        lines = (self.repo.home / "record").read_text(encoding="utf-8").splitlines()
        return [line.split()[1:] for line in lines if line.startswith(f"{kind} ")]


def make_run(root: Path) -> Run:
    repo = make_repo(root)
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", text.replace('test = "true"', PROJECT))
    repo.write(".gitignore", "node_modules/\n")
    repo.write("record", RECORD)
    repo.write("config/known.toml", "a = 1\n")
    base = repo.commit("a project with needs")
    for name in (".env", "config/local.toml", "node_modules/x.js"):
        repo.write(name, "")
    repo.behave(
        developer={"run": "sh record agent; echo x > half.txt; git add -A; git commit -qm half; echo x > whole.txt"},
        reviewer={"run": "sh record agent"},
    )
    done = repo.iterdev("run", "-y", "-c", "1", "--pipeline", "sprint", "Add a greeting")
    left = left_behind(repo)
    assert done.returncode == 0, done.stdout + done.stderr
    return Run(repo, done.stdout, left, base)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return once(tmp_path_factory, "worktrees", make_run)


def test_nothing_that_was_brought_in_is_committed(run: Run) -> None:
    branch = f"iterdev/{run.repo.folder().name}"

    changed = run.repo.git("diff", "--name-only", run.base, branch).splitlines()

    assert changed == ["DEV-001.txt", "half.txt", "whole.txt"]


def test_nobody_is_blamed_for_what_was_brought_in(run: Run) -> None:
    assert "warning" not in run.output
    assert "Warnings" not in run.repo.iterdev("report").stdout


def test_no_agent_starts_before_the_worktree_is_ready(run: Run) -> None:
    kinds = [line.split()[0] for line in (run.repo.home / "record").read_text(encoding="utf-8").splitlines()]

    assert kinds[:5] == ["setup", "ready", "ready", "ready", "agent"]
    assert kinds.count("setup") == 1


def test_agents_and_tests_have_the_same_ports_containers_and_temporary_folder(run: Run) -> None:
    agents, tests = run.records("agent"), run.records("test")
    (port, count, project, temp), *others = {tuple(record[:4]) for record in agents + tests + run.records("setup")}

    assert others == []
    assert int(port) > 0
    assert int(count) == 4
    assert project.startswith("iterdev-")
    assert Path(temp).is_relative_to(run.repo.home / "iterdev")


def test_the_tests_of_the_base_run_in_the_same_surroundings(run: Run) -> None:
    (base, change) = run.records("test")

    assert base[4] == run.base
    assert change[4] != run.base
    assert [word for index, word in enumerate(base) if index != 4] == [
        word for index, word in enumerate(change) if index != 4
    ]


def test_nothing_is_left_and_the_checkout_is_as_it_was(run: Run) -> None:
    assert run.left == []
    assert (run.repo.path / "node_modules" / "x.js").exists()
    assert run.repo.git("status", "--porcelain") == "?? .env\n?? config/local.toml"


def test_a_worktree_that_never_gets_ready_is_told_in_a_sentence_with_a_hint(repo: Repo) -> None:
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    ready = 'test = "true"\nready = "echo no database >&2; exit 7"\n[limits]\nready = 0.2\n'
    repo.write("iterdev.toml", text.replace('test = "true"', ready))
    repo.commit("not ready")

    done = repo.iterdev("run", "-y", "Fix it")

    assert done.returncode == 4
    assert "not ready within 0.2 s: `echo no database >&2; exit 7` failed with 7: no database" in done.stderr
    assert "hint: fix `setup` or `ready`" in done.stderr
    assert repo.calls() == []


def test_two_runs_at_once_have_different_ports_and_containers(tmp_path: Path) -> None:
    repos = [make_repo(tmp_path / name) for name in ("one", "two")]
    meet = tmp_path / "meeting"
    meet.mkdir()
    here = f"touch {meet}/$ITERDEV_PORT-$COMPOSE_PROJECT_NAME; until test $(ls {meet} | wc -l) = 2; do sleep 0.05; done"
    for repo in repos:
        repo.behave(developer={"run": here})

    with Background(repos[0], "run", "-y", "Fix it") as one, Background(repos[1], "run", "-y", "Fix it") as two:
        assert (one.end().returncode, two.end().returncode) == (0, 0)

    ports, projects = zip(*(path.name.split("-", 1) for path in meet.iterdir()), strict=True)
    assert len(set(ports)) == len(set(projects)) == 2
