"""Agents in the sandbox try every known way out, as root and as another user; then the user's machine is looked at."""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
from msgspec import Struct
from tests.conftest import Repo, make_repo
from tests.e2e.conftest import once
from tests.session_files import left_behind, rows

OTHER = 54321
"""A user that the machine has no account for."""
WAYS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("escapes.toml").read_text(encoding="utf-8"))
NAMES = [way for ways in WAYS.values() for way in ways]
LANDING = (
    *("smudge-filter", "linked-folder", "linked-project", "linked-programs", "tests"),
    *("forge-environment", "package-lookup"),
)
"""Those whose work lands, so that it is in the workspaces of later tasks; that of the others is only kept."""
NEEDS = '{ name = "lib", version_range = "", source = "pip" }'
DRIVERS = """
[filter "tidy"]
    clean = sh tools/tidy
    smudge = sh tools/tidy
[merge "tidy"]
    driver = sh tools/merge
"""
"""Settings of the user that start programs of the repository."""
SCORES = "result = { scores = { correctness = 9, completeness = 9, maintainability = 9, security = 9 }, issues = [] }"
TESTS = "for attack in attacks/*.sh; do sh $attack; done; echo attacked; true\n"


class Machine(Struct, frozen=True):
    """What is left after all agents have tried."""

    output: str
    changed: list[str]
    """Files of the user that are new, gone or different."""
    leaked: list[str]
    """Ways whose secret is in the repository, in the session folder, or in what the command printed."""
    statuses: dict[str, str]
    attacked: bool
    """Whether the tests ran with what agents had put into them."""
    fsck: str
    left: list[str]


def secret(way: str) -> str:
    return f"secret-of-{way}-7c1b"


def rules(repo: Repo) -> tuple[str, str]:
    """The script of the agents, with a task for each way, and the table of the tasks."""
    developer = {way: f"DEV-{number:03}" for number, way in enumerate(WAYS["developer"], 1)}
    reviewer = {way: f"REVIEW-{number:03}" for number, way in enumerate(WAYS["reviewer"], 1)}
    script = [rule(repo, way, task) for way, task in (developer | reviewer).items()]
    landing = ";".join(developer[way] for way in LANDING)
    rows = [f"{task},{way},try it," for way, task in developer.items()]
    rows += [f"{task},{way},try it,{developer['package-lookup']}" for way, task in reviewer.items()]
    table = "\n".join(("id,title,description,deps", *rows, f"VERIFY-001,verify,run the tests,{landing}", ""))
    return "\n".join((*script, '[[rule]]\nrole = "tester"\nresult = {}\n')), table


def rule(repo: Repo, way: str, task: str) -> str:
    words = {"home": repo.home, "top": repo.path, "name": way, "secret": repo.home / ".secrets" / way}
    words |= {"touch": f"touch {repo.home}/escaped-{way}", "admin": "$(git rev-parse --absolute-git-dir)"}
    text = {**WAYS["developer"], **WAYS["reviewer"]}[way]
    for word, value in words.items():
        text = text.replace(f"{{{word}}}", str(value))
    status = "completed" if way in LANDING else "failed"
    result = f'result = {{ status = "{status}", external_dependencies = [{NEEDS if way == "package-lookup" else ""}] }}'
    if way in WAYS["reviewer"]:
        result = "" if way == "reviewer-result" else SCORES
    return (
        f"[[rule]]\ntask = '{task}'\nrun = '''\n({text}) 2> /dev/null\necho {way} > done-{way}\ntrue\n'''\n{result}\n"
    )


def prepare(root: Path) -> tuple[Repo, str]:
    repo = make_repo(root)
    for way in NAMES:
        path = repo.home / ".secrets" / way
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f'{{"status": "completed", "findings": "{secret(way)}", "{secret(way)}": 1}}\n', encoding="utf-8"
        )
    for name in (".bashrc", ".profile"):
        (repo.home / name).write_text("# the user's\n", encoding="utf-8")
    with (repo.home / ".gitconfig").open("a", encoding="utf-8") as file:
        file.write(DRIVERS)
    script, table = rules(repo)
    (repo.home / "script.toml").write_text(script, encoding="utf-8")
    (repo.home / "tasks.csv").write_text(table, encoding="utf-8")
    repo.write("tests.sh", TESTS)
    repo.write(
        "iterdev.toml",
        f"""
        [run]
        agent = "mine"
        sandbox = true
        concurrency = 4
        [project]
        test = "sh tests.sh"
        [agents.mine]
        script = "{repo.home}/script.toml"
        """,
    )
    repo.commit("a sandbox")
    return repo, str(repo.home / "tasks.csv")


def users_files(repo: Repo) -> dict[str, bytes]:
    """Everything that is the user's: the home, the checkout, and git's settings, hooks and branches."""
    ours = {repo.home / "iterdev", repo.home / "tmp", repo.path / ".workflow"}
    inner = {
        repo.path / ".git" / name for name in ("objects", "worktrees", "logs", "refs/iterdev", "refs/heads/iterdev")
    }
    found: dict[str, bytes] = {}
    for folder, names, files in os.walk(repo.home.parent):
        names[:] = [name for name in names if Path(folder, name) not in ours | inner]
        for path in (Path(folder, name) for name in (*files, *names)):
            found[str(path)] = os.fsencode(path.readlink()) if path.is_symlink() else _content(path)
    return {path: content for path, content in found.items() if not path.endswith((".git/index", "info/exclude"))}


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def everything_written(repo: Repo, printed: bytes) -> bytes:
    objects = ["git", "cat-file", "--batch-all-objects", "--batch"]
    stored = subprocess.run(objects, cwd=repo.path, env=repo.env, capture_output=True, check=True).stdout
    files = (path for folder in (repo.path / ".workflow", repo.home / "iterdev") for path in folder.rglob("*"))
    return b"\n".join((printed, stored, *(_content(path) for path in files if not path.is_symlink())))


def attack(repo: Repo, tasks: str, words: list[str]) -> Machine:
    before = users_files(repo)
    command = [*words, "run", "-y", "--tasks", tasks, "Try to get out"]
    done = subprocess.run(command, cwd=repo.path, env=repo.env, capture_output=True, timeout=600, check=False)
    # The repository may be another user's.
    repo.env |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    after, left = users_files(repo), left_behind(repo)
    written = everything_written(repo, done.stdout + done.stderr)
    fsck = subprocess.run(
        ["git", "fsck", "--full", "--no-dangling"],
        cwd=repo.path,
        env=repo.env,
        capture_output=True,
        text=True,
        check=False,
    )
    return Machine(
        output=(done.stdout + done.stderr).decode("utf-8", "replace"),
        changed=sorted(path for path in {*before, *after} if before.get(path) != after.get(path)),
        leaked=[way for way in NAMES if secret(way).encode() in written],
        statuses={row["title"]: row["status"] for row in rows(repo.folder()).values()},
        attacked=b"attacked" in written,
        fsck=fsck.stdout + fsck.stderr,
        left=left,
    )


def as_this_user(root: Path) -> Machine:
    repo, tasks = prepare(root)
    return attack(repo, tasks, repo.command())


def as_another_user(_: Path) -> Machine | str:
    """The same in a folder of another user; why it cannot be done, if that is so."""
    if os.getuid():
        return "only root can become another user; the other tests already ran as one that is not root"
    if not shutil.which("setpriv"):
        return "there is no program `setpriv` to become another user with"
    become = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "env"]
    with tempfile.TemporaryDirectory(prefix="iterdev-") as folder:
        Path(folder).chmod(0o755)
        repo, tasks = prepare(Path(folder))
        repo.env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        for python in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin") or ""):
            words = [*become, python, "-m", "iterdev"]
            tried = [*words, "--version"]
            if python and not subprocess.run(tried, env=repo.env, cwd="/", capture_output=True, check=False).returncode:
                break
        else:
            return f"no Python {sys.version_info[0]}.{sys.version_info[1]} that another user may start"
        repo.env["PATH"] = "/usr/local/bin:/usr/bin:/bin"
        subprocess.run(["chown", "-R", f"{OTHER}:{OTHER}", folder], check=True)
        return attack(repo, tasks, words)


@pytest.fixture(scope="module", params=["this user", "another user"])
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    if request.param == "this user":
        return once(tmp_path_factory, "escapes", as_this_user)
    found = once(tmp_path_factory, "escapes-of-another-user", as_another_user)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.mark.parametrize("way", NAMES)
def test_no_way_leads_out_of_the_sandbox(machine: Machine, way: str) -> None:
    assert way not in machine.leaked
    assert [path for path in machine.changed if path.endswith(f"escaped-{way}")] == []


def test_nothing_of_the_user_was_changed(machine: Machine) -> None:
    assert machine.changed == [], machine.output
    assert machine.fsck == ""


def test_every_way_was_tried_to_its_end(machine: Machine) -> None:
    assert {machine.statuses[way] for way in (*LANDING, "verify")} == {"completed"}, machine.output
    assert {machine.statuses[way] for way in NAMES} <= {"completed", "failed"}
    assert machine.attacked
    assert len(NAMES) >= 30


def test_attacks_leave_nothing_behind(machine: Machine) -> None:
    # What was installed for all workspaces stays.
    assert [entry for entry in machine.left if "/iterdev/environments" not in entry] == []
