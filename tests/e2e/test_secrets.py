"""Secrets that agents and programs let slip are in no file, log, ref, journal, prompt or environment of a session."""

import base64
import json
import random
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.conftest import Repo, make_repo
from tests.e2e.conftest import every_file, once, typed

RANDOM = random.Random(12)
LINES = [base64.b64encode(RANDOM.randbytes(48)).decode() for _ in range(30)]
PEM = "\n".join(["-----BEGIN PRIVATE KEY-----", *LINES, "-----END PRIVATE KEY-----"])
MODEL_KEY = "k7Qw9zX2mN4vB8cL1pR5"
PROVIDER_KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
SECRETS = {
    "a variable that the agent gets": MODEL_KEY,
    "a variable that it does not get": "deploy-horse-battery",
    "a password in DATABASE_URL": "pg-staple%2Fcorrect",
    "a password of a proxy": "proxy-battery-horse",
    "a value of the .env file": "correct-horse-battery",
    "a value with quotes, a backslash and an umlaut": 'pa"ss\\wörd-with-marks',
    "a random value of the .env file": "rk9Xw2LmQ7vTn4Bz8Hc1",
    "a password in the address of a remote": "remote-horse-staple",
    "a header of git": "eDpoZWFkZXItaG9yc2U=",
    "a provider's key": PROVIDER_KEY,
    "a token of GitHub": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "a key of AWS": "AKIAIOSFODNN7EXAMPLE",
    "a JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.SflKxwRJSMeKKF2QT4fw",
    "a password in a URL": "amqp://guest:url-horse-battery@host/x",
    "a private key": PEM,
    "the first lines of a private key": "\n".join(PEM.splitlines()[:9]),
    "the last lines of a private key": "\n".join(PEM.splitlines()[-9:]),
    "a private key with numbers": "\n".join(f"{number:6}\t{line}" for number, line in enumerate(PEM.splitlines(), 1)),
}
UNIQUE = {"a password in a URL": "url-horse-battery"}
"""The part of a secret that must not stay, where that is not all of it."""
ENVIRONMENT = {
    "MODEL_API_KEY": MODEL_KEY,
    "DEPLOY_TOKEN": SECRETS["a variable that it does not get"],
    "DATABASE_URL": f"postgres://app:{SECRETS['a password in DATABASE_URL']}@db/x",
    "https_proxy": f"http://me:{SECRETS['a password of a proxy']}@proxy.invalid:3128",
}
DOTENV = f"""
DB_PASSWORD={SECRETS["a value of the .env file"]}
APP_SECRET='{SECRETS["a value with quotes, a backslash and an umlaut"]}'
STRIPE={SECRETS["a random value of the .env file"]}
"""

AGENT = r"""
import json, os, pathlib, subprocess, sys

home, task = pathlib.Path(os.environ["HOME"]), os.environ["ITERDEV_TASK"]
session = pathlib.Path(os.environ["ITERDEV_SESSION_DIR"])
prompt = sys.stdin.read()
planted = json.loads((home / "planted.json").read_text())
token = os.environ["ITERDEV_TOOLS_TOKEN"]
leak = "\n".join([*planted, token, pathlib.Path(".env").read_text()])
named = {secret: [secret] for secret in [*planted, token]}

def record(name, text):
    with (home / "recorded" / name).open("a") as file:
        file.write(text + "\n")

def environment(pid):
    return pathlib.Path("/proc", str(pid), "environ").read_text(errors="replace")

def parent(pid):
    return pathlib.Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1]

def iterdev(*words):
    subprocess.run(["iterdev", *words], check=False)

record("prompts", prompt)
own = {"MODEL_API_KEY", "ITERDEV_TOOLS_TOKEN", "https_proxy"}
record("environment of the agent", "\n".join(f"{k}={v}" for k, v in os.environ.items() if k not in own))
record("environment of the monitor", environment(os.getppid()))
record("environment of the supervisor", environment(parent(os.getppid())))
for end in ("", "-wal"):
    journal = session.parents[1] / f"iterdev.db{end}"
    if journal.exists():
        record(f"journal while it is written{end}", journal.read_bytes().decode(errors="replace"))

print(leak, flush=True)
print(json.dumps(named), flush=True)
print("x" * 490 + os.environ["MODEL_API_KEY"], flush=True)
print(leak, file=sys.stderr, flush=True)
pathlib.Path(f"{task}.txt").write_text("done")
with (session / "discoveries.ndjson").open("a") as board:
    for number, secret in enumerate([*planted, token]):
        data = {"name": f"{task} {number} {secret}", secret: {secret: [secret]}}
        board.write(json.dumps({"ts": "", "worker": task, "type": "convention", "data": data}) + "\n")
    board.write(leak + "\n")
if task == "DEV-001":
    iterdev("team", "log", "--type", "progress", "--summary", leak, "--data", json.dumps(named))
    iterdev("team", "log", "--type", "state_update", "--summary", "state", "--data", json.dumps(named))
    iterdev("checkpoint", "save", "--data", json.dumps(named))
    iterdev("team", "board-add", "--type", "convention", "--data", json.dumps({"name": leak, **named}))
    iterdev("lock", "acquire", "--resource", planted[0])
if task == "DEV-002":
    sys.exit(leak)
result = {
    "id": "DEV-999" if task == "DEV-003" else task,
    "status": "failed" if task == "DEV-004" else "completed",
    "findings": leak,
    "error": leak,
    "discoveries": [{"type": "convention", "data": {"name": leak, "description": leak, **named}}],
    "wisdom": {"learnings": [leak], "issues": [leak]},
    "tech_debt": [leak],
    **named,
}
if task == "REVIEW-001":
    scores = dict.fromkeys(("correctness", "completeness", "maintainability", "security"), 9)
    result |= {"scores": scores, "issues": [{"severity": "low", "description": leak, "file": leak}]}
if task == "DESIGN-001":
    result |= {"design": leak, "components": [{"name": leak, "dependencies": []}]}
    result |= {"tasks": [{"id": "1", "title": leak}]}
if task == "DEV-005":
    print(json.dumps(result))
else:
    pathlib.Path(os.environ["ITERDEV_RESULT"]).write_text(json.dumps(result))
"""
TABLE = """id,title,description,deps
DESIGN-001,designs,designs,
DEV-001,succeeds with {secret},succeeds with {secret},
DEV-002,crashes,crashes,
DEV-003,mistakes its task,mistakes its task,
DEV-004,gives up,gives up,
DEV-005,prints its result,prints its result,
VERIFY-001,tests,tests,DEV-001
REVIEW-001,reviews,reviews,DEV-001
DEV-006,reads what was found before,reads what was found before,REVIEW-001
"""
SETTINGS = """
[run]
agent = "leaky"

[project]
copy = [".env"]
setup = "cat .env $HOME/planted.txt >&2"
test = '''test ! -e DEV-001.txt || {{ cat .env $HOME/planted.txt; exit 1; }}'''

[limits]
rounds = 0

[agents.leaky]
command = ["python3", "{agent}"]
env = ["MODEL_API_KEY"]
"""
AFTERWARDS = (
    *("status", "status --json", "report", "logs", "why DEV-002", "team list --json", "team board-read --json"),
    *("team get-state --json", "checkpoint list --json", "debt list --json", "wisdom list --json", "export out"),
)


def leaky_repo(root: Path) -> Repo:
    """A repository with secrets at every place where people keep them, and an agent that knows all of them."""
    repo = make_repo(root)
    (repo.home / "recorded").mkdir()
    (repo.home / "leaky.py").write_text(AGENT, encoding="utf-8")
    (repo.home / "table.csv").write_text(TABLE.replace("{secret}", PROVIDER_KEY), encoding="utf-8")
    (repo.home / "planted.json").write_text(json.dumps(list(SECRETS.values())), encoding="utf-8")
    (repo.home / "planted.txt").write_text("\n".join(SECRETS.values()), encoding="utf-8")
    repo.write("iterdev.toml", SETTINGS.format(agent=repo.home / "leaky.py"))
    repo.write(".gitignore", ".env\nout\n")
    repo.commit("settings")
    (repo.path / ".env").write_text(DOTENV, encoding="utf-8")
    repo.git(
        "remote", "add", "origin", f"https://ci:{SECRETS['a password in the address of a remote']}@host.invalid/a.git"
    )
    repo.git("config", "http.https://host.invalid/.extraheader", f"AUTHORIZATION: basic {SECRETS['a header of git']}")
    return repo


def run_leaky(root: Path) -> dict[str, str]:
    repo = leaky_repo(root)
    run = repo.iterdev("run", "-y", "--tasks", str(repo.home / "table.csv"), **ENVIRONMENT)
    assert run.returncode == 1, run.stderr
    seen = {"run": run.stdout + run.stderr}
    for command in AFTERWARDS:
        done = repo.iterdev(*command.split(), **ENVIRONMENT)
        seen[command] = done.stdout + done.stderr
    seen["commits and refs"] = repo.git("log", "--all", "--format=%an %ae %B", "--decorate=full") + repo.git(
        "for-each-ref"
    )
    for name in (
        repo.path / ".workflow",
        repo.path / "out",
        repo.home / "iterdev",
        repo.home / "tmp",
        repo.home / "recorded",
    ):
        seen |= {f"{name.name}/{file}": data.decode("utf-8", "replace") for file, data in every_file(name).items()}
    return seen


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Everything that a run with the leakiest of agents wrote, by the place where it was written."""
    return once(tmp_path_factory, "leaky", run_leaky)


def forms_of(name: str) -> set[str]:
    """The texts that show that a secret has stayed: as it is, in JSON and in a URL; of a key, a part of each line."""
    whole = UNIQUE.get(name, SECRETS[name])
    parts = [line.split()[-1][part] for line in whole.splitlines() for part in (slice(0, 16), slice(-16, None))]
    secrets = [part for part in parts if "-----" not in part and " " not in part] if "\n" in whole else [whole]
    return {
        form
        for secret in secrets
        for form in (
            secret,
            quote(secret, safe=""),
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
        )
    }


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_that_slips_out_is_nowhere(places: dict[str, str], name: str) -> None:
    forms = forms_of(name)

    assert [place for place, text in places.items() if any(form in text for form in forms)] == []


def test_the_token_of_the_tools_is_nowhere(places: dict[str, str]) -> None:
    assert [place for place, text in places.items() if "xitd_" in text] == []


def test_every_place_was_looked_at(places: dict[str, str]) -> None:
    recorded = {place.removeprefix("recorded/") for place in places if place.startswith("recorded/")}
    written = {Path(place).name for place in places if place.startswith(".workflow/")}

    assert {
        "prompts",
        "environment of the agent",
        "environment of the monitor",
        "environment of the supervisor",
    } <= recorded
    assert {"journal while it is written", "journal while it is written-wal"} <= recorded
    assert {
        "iterdev.db",
        "messages.jsonl",
        "discoveries.ndjson",
        "tasks.csv",
        "DEV-001-1.log",
        "verify-001.json",
    } <= written
    assert "supervisor" not in places["recorded/environment of the supervisor"]
    assert "PATH=" in places["recorded/environment of the supervisor"]


def test_no_half_of_a_secret_is_left_where_a_line_is_cut(places: dict[str, str]) -> None:
    assert [place for place, text in places.items() if MODEL_KEY[:8] in text or MODEL_KEY[-8:] in text] == []


def test_the_words_around_a_secret_stay(places: dict[str, str]) -> None:
    assert any("DB_PASSWORD=" in text for place, text in places.items() if place.startswith(".workflow/.csv-wave/"))
    assert any(place.endswith("logs/DEV-001-1.log") for place in places)
    assert "succeeds with [secret]" in places["commits and refs"]


def test_a_secret_in_the_request_is_not_written_down(repo: Repo) -> None:
    run = repo.iterdev("run", "-y", f"Fix the login that uses {PROVIDER_KEY} and {MODEL_KEY}", MODEL_API_KEY=MODEL_KEY)

    written = every_file(repo.path / ".workflow")
    assert run.returncode == 0, run.stderr
    for secret in (PROVIDER_KEY, MODEL_KEY):
        assert [name for name, data in written.items() if secret.encode() in data] == []
        assert secret not in str(repo.calls())


def test_a_setup_command_that_lets_a_secret_slip_is_quoted_without_it(repo: Repo) -> None:
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", text.replace('test = "true"', 'test = "true"\nsetup = "echo $XDG_LEAK >&2; exit 1"'))

    run = repo.iterdev("run", "-y", "Fix it", XDG_LEAK=PROVIDER_KEY)

    assert run.returncode == 4
    assert PROVIDER_KEY not in run.stderr
    assert [name for name, data in every_file(repo.path / ".workflow").items() if PROVIDER_KEY.encode() in data] == []


def test_the_folder_of_the_state_is_not_committed(repo: Repo) -> None:
    repo.iterdev("run", "-y", "Fix it")

    assert ".workflow" not in repo.git("status", "--porcelain", "--untracked-files=all")
    assert not (repo.path / ".gitignore").exists()


def test_an_error_quotes_no_secret(repo: Repo) -> None:
    status = repo.iterdev("status", MODEL_KEY, MODEL_API_KEY=MODEL_KEY)

    assert status.returncode == 2
    assert '"[secret]"' in status.stderr
    assert MODEL_KEY not in status.stderr


def test_only_the_user_can_read_the_state_whatever_the_umask(repo: Repo) -> None:
    run = typed(repo, "umask 0; iterdev run -y 'Fix it'")

    state, folder = repo.path / ".workflow", repo.folder()
    private = [state, folder, state / "iterdev.db", *(folder / "logs").iterdir(), repo.home / "iterdev"]
    assert run.returncode == 0, run.stderr
    assert [str(path) for path in private if path.exists() and path.stat().st_mode & 0o077] == []
    assert (state / "iterdev.db").stat().st_mode & 0o777 == 0o600


def test_the_state_of_an_older_iterdev_becomes_private(repo: Repo) -> None:
    repo.iterdev("run", "-y", "Fix it")
    for path in (repo.path / ".workflow" / "iterdev.db", repo.folder()):
        path.chmod(0o755)

    repo.iterdev("feedback", "add", "It is too long")

    assert (repo.path / ".workflow" / "iterdev.db").stat().st_mode & 0o077 == 0
    assert repo.folder().stat().st_mode & 0o077 == 0
