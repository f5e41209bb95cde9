"""What a new user meets: no coding agent, one without a login, and one that is newer than what we know."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.e2e.coding.conftest import CLIS, PATIENCE, Studio
from tests.e2e.conftest import typed
from tests.session_files import left_behind

from iterdev.agents.scripted.script import Fail, Rule, Script, Step

REFUSED = Script(rules=(Rule(match=".", steps=(Step(fail=Fail(status=401, message="invalid api key")),)),))


@pytest.fixture
def programs(repo: Repo, tmp_path: Path) -> Path:
    """The only folder with programs, among them what iterdev itself needs; and no configuration."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("git", "sh"):
        (folder / name).symlink_to(str(shutil.which(name)))
    (folder / "iterdev").symlink_to(Path(sys.executable).with_name("iterdev"))
    repo.env["PATH"] = str(folder)
    (repo.path / "iterdev.toml").unlink()
    repo.commit("no configuration")
    return folder


def install(folder: Path, name: str, version: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\necho '{name} {version}'\n", encoding="utf-8")
    (folder / name).chmod(0o755)


def listed(repo: Repo, name: str) -> dict[str, object]:
    rows = json.loads(repo.iterdev("agents", "--json").stdout)["agents"]
    return dict(next(row for row in rows if row["name"] == name))


@pytest.mark.usefixtures("programs")
def test_without_any_agent_a_run_fails_at_once_with_a_command_to_paste(repo: Repo) -> None:
    done, doctor = repo.iterdev("run", "-y", "Greet people"), repo.iterdev("doctor")

    assert done.returncode == 4
    assert done.stderr.splitlines() == [
        'iterdev: No coding agent is installed, and "claude" is wanted',
        "hint: npm install -g @anthropic-ai/claude-code",
    ]
    assert not (repo.path / ".workflow" / ".csv-wave").exists()
    assert listed(repo, "codex") == {
        "name": "codex",
        "kind": "known",
        "installed": False,
        "usable": False,
        "version": "",
        "note": "",
        "problem": 'The program "codex" of the agent "codex" was not found',
        "hint": "npm install -g @openai/codex",
    }
    assert doctor.returncode == 1
    assert '!! agent claude: The program "claude" of the agent "claude" was not found' in doctor.stdout
    assert "hint: npm install -g @anthropic-ai/claude-code" in doctor.stdout


def test_the_hint_of_a_missing_agent_names_one_that_is_there_and_can_still_be_pasted(
    repo: Repo, programs: Path
) -> None:
    install(programs, "qwen", "0.15.10")
    (programs / "npm").write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    (programs / "npm").chmod(0o755)

    done = repo.iterdev("run", "-y", "Greet people")
    hint = done.stderr.splitlines()[1].removeprefix("hint: ")

    assert done.returncode == 4
    assert hint.endswith("# or use what is installed: --agent qwen")
    repo.env["PATH"] += ":/bin:/usr/bin"
    assert typed(repo, hint).stdout == "install -g @anthropic-ai/claude-code\n"


def test_an_agent_newer_than_the_last_known_version_is_used_with_a_note(repo: Repo, programs: Path) -> None:
    install(programs, "codex", "99.1.2")
    note = "version 99.1.2 is newer than 0.166.0, the last one known to work"

    done = repo.iterdev("run", "-y", "--agent", "codex", "--pipeline", "patch", "Greet people")
    repo.write("iterdev.toml", '[run]\nagent = "codex"\n')

    assert f"codex: {note}" in done.stderr
    assert "DEV-001 started (developer, codex, attempt 1)" in done.stdout
    row = listed(repo, "codex")
    assert (row["usable"], row["version"], row["note"]) == (True, "99.1.2", note)
    assert f"99.1.2     usable; {note}" in repo.iterdev("agents").stdout
    assert f"ok agent codex 99.1.2 ({note})" in repo.iterdev("doctor").stdout


@pytest.mark.parametrize("agent", CLIS)
def test_an_agent_without_a_login_says_so_and_how_to_log_in(agent: str, studio: Studio) -> None:
    words = {
        "claude": "run `claude` and log in",
        "codex": "log in with `codex login`",
        "gemini": f'with HOME={studio.repo.home.parent}/gemini, run "gemini" once and log in, or set GEMINI_API_KEY',
        "qwen": f'with HOME={studio.repo.home.parent}/qwen, run "qwen" once and log in, or set OPENAI_API_KEY',
    }

    with studio.asking(REFUSED, key=""):
        done = studio.repo.iterdev("run", "-y", "--pipeline", "patch", "Greet people", timeout=PATIENCE)
    left = left_behind(studio.repo)

    assert done.returncode == 1
    assert f'DEV-001 failed: The agent "{agent}" is not logged in: ' in done.stdout
    assert words[agent] in done.stdout
    assert left == []
