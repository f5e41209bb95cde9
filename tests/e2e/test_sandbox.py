"""Whole runs in the sandbox: agents that would do harm, a crash, and machines on which there is no sandbox."""

import json
import shutil
from pathlib import Path

import pytest
from msgspec import Struct
from tests.conftest import Repo, make_repo
from tests.e2e.conftest import Background, eventually, once, script
from tests.session_files import left_behind, messages, rows

SECRET = "the-key-of-the-user"
ON = '[run]\nagent = "mine"\nsandbox = true\n'

SCRIPT = """
[[rule]]
role = "architect"
run = "echo harm > $ITERDEV_SESSION_DIR/harm; echo '{line}' >> $ITERDEV_SESSION_DIR/discoveries.ndjson"
[rule.result]
design = "# Design"
components = [{{ name = "main", responsibility = "all", dependencies = [], files = [] }}]
tasks = [{{ id = "task-1", title = "Do it", files = [], complexity = "low", dependencies = [] }}]

[[rule]]
role = "developer"
run = '''
(cat $HOME/.ssh/id_ed25519; ls -A $HOME) > seen.txt 2>&1
iterdev team log --type progress --summary "told from inside"
echo harm | tee {top}/README.md {top}/harm $HOME/harm /tmp/harm
git add -A; git commit -qm 'By the agent'; git branch -f main HEAD
rm -rf {top}/*; echo x > after.txt
'''
result = {{}}

[[rule]]
role = "reviewer"
run = "echo changed > README.md; cat after.txt"
result = {{ scores = {{ correctness = 9, completeness = 9, maintainability = 9, security = 9 }}, issues = [] }}
"""
TEST = "test ! -e $HOME/.ssh && ! echo harm > {top}/harm && git log -1 --format=%s"
LINE = {"ts": "now", "worker": "DESIGN-001", "type": "convention", "data": {"name": "shared from inside"}}


class Run(Struct, frozen=True):
    repo: Repo
    output: str
    left: list[str]
    base: str


def enclose(repo: Repo, text: str, test: str = "true") -> str:
    """A scripted agent in the sandbox; returns the commit that everything starts from."""
    (repo.home / ".ssh").mkdir()
    (repo.home / ".ssh" / "id_ed25519").write_text(SECRET, encoding="utf-8")
    script(repo, text)
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    settings = settings.replace('[run]\nagent = "mine"\n', ON).replace('test = "true"', f'test = "{test}"')
    repo.write("iterdev.toml", settings)
    return repo.commit("a sandbox")


def make_run(root: Path) -> Run:
    repo = make_repo(root)
    line = json.dumps(LINE).replace('"', '\\"')
    base = enclose(repo, SCRIPT.format(top=repo.path, line=line), TEST.format(top=repo.path))
    done = repo.iterdev("run", "-y", "--pipeline", "sprint", "Add a greeting")
    left = left_behind(repo)
    assert done.returncode == 0, done.stdout + done.stderr
    return Run(repo, done.stdout, left, base)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return once(tmp_path_factory, "sandboxed", make_run)


def test_an_agent_in_the_sandbox_sees_neither_secrets_nor_the_rest_of_the_home(run: Run) -> None:
    seen = run.repo.git("show", f"iterdev/{run.repo.folder().name}:seen.txt")

    assert SECRET not in seen
    assert ".ssh" not in seen.split()
    assert "No such file" in seen


def test_what_an_agent_in_the_sandbox_did_in_its_workspace_lands(run: Run) -> None:
    branch = f"iterdev/{run.repo.folder().name}"

    assert "By the agent" in run.repo.git("log", "--format=%s", branch).splitlines()
    assert run.repo.git("diff", "--name-only", run.base, branch).splitlines() == ["after.txt", "seen.txt"]


def test_an_agent_in_the_sandbox_harms_nothing(run: Run) -> None:
    assert run.repo.git("status", "--porcelain") == ""
    assert run.repo.git("rev-parse", "main") == run.base
    assert run.repo.git("fsck", "--full", "--no-dangling") == ""
    assert not (run.repo.home / "harm").exists()
    assert not Path("/tmp/harm").exists()
    assert not (run.repo.folder() / "harm").exists()
    assert "warning" not in run.output


def test_an_agent_in_the_sandbox_can_share_what_it_found(run: Run) -> None:
    assert "[developer] told from inside" in messages(run.repo.folder(), "progress")
    assert "shared from inside" in (run.repo.folder() / "discoveries.ndjson").read_text(encoding="utf-8")


def test_tests_run_in_the_sandbox_too(run: Run) -> None:
    assert rows(run.repo.folder())["VERIFY-001"]["findings"].startswith("Pass rate 100.0%")


def test_a_run_in_the_sandbox_leaves_nothing_behind(run: Run) -> None:
    assert run.left == []


def test_work_in_the_sandbox_survives_the_death_of_the_engine(repo: Repo) -> None:
    enclose(
        repo,
        """
        [[rule]]
        role = "developer"
        attempt = 1
        run = "echo x > first.txt; git add -A; git commit -qm 'Before the end'; echo y > $TMPDIR/ready; sleep 300"

        [[rule]]
        role = "developer"
        write = { "second.txt" = "x" }
        result = {}
        """,
    )
    with Background(repo, "run", "-y", "--pipeline", "patch", "Fix it") as running:
        eventually(lambda: list((repo.home / "iterdev").rglob("ready")), "the agent's commit")
        running.kill()

    done = repo.iterdev("resume")

    assert done.returncode in {0, 1}, done.stderr
    kept = repo.git("for-each-ref", "--format=%(refname)", "refs/iterdev").splitlines()
    assert "Before the end" in repo.git("log", "--format=%s", *kept)
    assert repo.git("fsck", "--full", "--no-dangling") == ""
    assert left_behind(repo) == []


def test_setup_knows_the_users_registries_and_agents_do_not(repo: Repo) -> None:
    (repo.home / ".npmrc").write_text("registry=https://packages.invalid/\n", encoding="utf-8")
    enclose(
        repo,
        """
        [[rule]]
        role = "developer"
        run = "cp .known known-to-setup.txt; cat $HOME/.npmrc > known-to-agent.txt; true"
        result = {}
        """,
    )
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", settings.replace("[project]", '[project]\nsetup = "cat $HOME/.npmrc > .known"'))

    done = repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it")

    assert done.returncode == 0, done.stderr
    (branch,) = repo.git("branch", "--list", "--format=%(refname)", "iterdev/*").splitlines()
    assert repo.git("show", f"{branch}:known-to-setup.txt") == "registry=https://packages.invalid/"
    assert repo.git("show", f"{branch}:known-to-agent.txt") == ""


@pytest.fixture
def without_bubblewrap(tmp_path: Path) -> str:
    """A PATH on which there is everything but bubblewrap."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("git", "sh", "cat", "python3"):
        (folder / name).symlink_to(str(shutil.which(name)))
    return str(folder)


def test_without_bubblewrap_nothing_starts_and_the_hint_can_be_pasted(repo: Repo, without_bubblewrap: str) -> None:
    enclose(repo, SCRIPT.format(top=repo.path, line=""))

    refused = repo.iterdev("run", "-y", "Fix it", PATH=without_bubblewrap)
    doctor = repo.iterdev("doctor", PATH=without_bubblewrap)

    assert refused.returncode == 4
    assert refused.stderr.splitlines() == [
        "iterdev: The sandbox needs bubblewrap, and there is no program `bwrap`",
        "hint: sudo apt install bubblewrap, or set `sandbox = false` under [run] in iterdev.toml",
    ]
    assert "No sessions yet" in repo.iterdev("sessions").stdout
    assert doctor.returncode == 1
    assert "!! sandbox: The sandbox needs bubblewrap" in doctor.stdout


def test_doctor_says_that_the_sandbox_works(repo: Repo) -> None:
    enclose(repo, SCRIPT.format(top=repo.path, line=""))

    doctor = repo.iterdev("doctor")

    assert doctor.returncode == 0, doctor.stdout
    assert "ok sandbox " in doctor.stdout
