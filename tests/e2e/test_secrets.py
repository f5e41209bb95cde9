"""Secrets that agents, tests and programs let slip are in no file of the state, no log, no journal and no prompt."""

import json
from pathlib import Path

import pytest
from tests.conftest import Repo, make_repo
from tests.e2e.conftest import every_file, once, typed

MODEL_KEY = "k7Qw9zX2mN4vB8cL1pR5"
PASSWORD = "correct-horse-battery"
QUOTED = 'pa"ss\\wörd-with-marks'
PROVIDER_KEY = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
PRIVATE_KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
PEM = f"-----BEGIN PRIVATE KEY-----\n{PRIVATE_KEY}\n{PRIVATE_KEY[::-1]}\n-----END PRIVATE KEY-----"
SECRETS = {
    "a variable of the environment": MODEL_KEY,
    "a value of the .env file": PASSWORD,
    "a value with quotes, a backslash and an umlaut": QUOTED,
    "a provider's key": PROVIDER_KEY,
    "a token": TOKEN,
    "a private key": PRIVATE_KEY,
    "the end of a private key": PRIVATE_KEY[::-1],
}

AGENT = r"""
import json, os, pathlib, sys

prompt = sys.stdin.read()
task, attempt = os.environ["ITERDEV_TASK"], os.environ["ITERDEV_ATTEMPT"]
with (pathlib.Path(os.environ["HOME"]) / "prompts").open("a") as log:
    log.write(prompt + "\n")
dotenv = pathlib.Path(".env").read_text()
leak = "\n".join([os.environ["MODEL_API_KEY"], dotenv, *json.loads(os.environ["XDG_LEAK"])])
print(leak, flush=True)
print("x" * 490 + os.environ["MODEL_API_KEY"], flush=True)
print(leak, file=sys.stderr, flush=True)
pathlib.Path(f"{task}.txt").write_text("done")
if task == "DEV-002":
    sys.exit(leak)
result = {
    "id": "DEV-999" if task == "DEV-003" else task,
    "status": "failed" if task == "DEV-004" else "completed",
    "findings": leak,
    "error": leak,
    "discoveries": [{"type": "convention", "data": {"name": leak, "description": leak}}],
    "wisdom": {"learnings": [leak], "issues": [leak]},
    "tech_debt": [leak],
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
TABLE = """id,description,deps
DESIGN-001,designs,
DEV-001,succeeds,
DEV-002,crashes,
DEV-003,mistakes its task,
DEV-004,gives up,
DEV-005,prints its result,
VERIFY-001,tests,DEV-001
REVIEW-001,reviews,DEV-001
DEV-006,reads what was found before,REVIEW-001
"""
SETTINGS = """
[run]
agent = "leaky"

[project]
copy = [".env"]
test = '''test ! -e DEV-001.txt || { cat .env; echo "$XDG_LEAK"; exit 1; }'''

[limits]
rounds = 0

[agents.leaky]
command = ["python3", "{agent}"]
env = ["MODEL_API_KEY"]
"""


def run_leaky(root: Path) -> dict[str, str]:
    repo = make_repo(root)
    agent = repo.home / "leaky.py"
    agent.write_text(AGENT, encoding="utf-8")
    (repo.home / "table.csv").write_text(TABLE, encoding="utf-8")
    repo.write("iterdev.toml", SETTINGS.replace("{agent}", str(agent)))
    repo.write(".gitignore", ".env\n")
    repo.commit("settings")
    (repo.path / ".env").write_text(f"DB_PASSWORD={PASSWORD}\nAPP_SECRET='{QUOTED}'\n", encoding="utf-8")
    leak = json.dumps([PROVIDER_KEY, TOKEN, *PEM.splitlines()])
    run = repo.iterdev("run", "-y", "--tasks", str(repo.home / "table.csv"), MODEL_API_KEY=MODEL_KEY, XDG_LEAK=leak)
    assert run.returncode == 1
    written = {name: data.decode("utf-8", "replace") for name, data in every_file(repo.path / ".workflow").items()}
    said = {"standard output": run.stdout, "standard error": run.stderr}
    return written | said | {"prompts": (repo.home / "prompts").read_text(encoding="utf-8")}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Everything that a run with the leakiest of agents wrote, by the place where it was written."""
    return once(tmp_path_factory, "leaky", run_leaky)


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_a_secret_that_slips_out_is_nowhere(places: dict[str, str], secret: str) -> None:
    forms = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}

    assert [place for place, text in places.items() if any(form in text for form in forms)] == []


def test_no_half_of_a_secret_is_left_where_a_line_is_cut(places: dict[str, str]) -> None:
    assert [place for place, text in places.items() if MODEL_KEY[:8] in text or MODEL_KEY[-8:] in text] == []


def test_the_words_around_a_secret_stay(places: dict[str, str]) -> None:
    assert any("DB_PASSWORD=" in text for place, text in places.items() if place.startswith(".csv-wave/"))
    assert any(place.endswith("logs/DEV-001-1.log") for place in places)


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
