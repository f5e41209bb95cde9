"""Agents that change which programs are started: the configuration, programs of other agents, git's settings, hooks."""

from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.session_files import rows

REVIEW = """
import json, os
scores = dict.fromkeys(("correctness", "completeness", "maintainability", "security"), {score})
result = {{"id": os.environ["ITERDEV_TASK"], "status": "completed", "findings": "seen", "scores": scores, "issues": []}}
with open(os.environ["ITERDEV_RESULT"], "w") as file:
    json.dump(result, file)
"""


@pytest.fixture
def with_reviewer(repo: Repo) -> Repo:
    """A repository with its own reviewer, as in the README; it thinks little of all work."""
    repo.write("tools/review.py", REVIEW.format(score=2))
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    settings += f'[agents.developer]\nscript = "{repo.home}/script.toml"\n[roles.developer]\nagent = "developer"\n'
    reviewer = '[roles.reviewer]\nagent = "strict"\n[agents.strict]\ncommand = ["python3", "tools/review.py"]\n'
    repo.write("iterdev.toml", f"{settings}\n{reviewer}")
    repo.commit("a reviewer")
    return repo


@pytest.mark.parametrize("sandbox", ["false", "true"])
def test_a_developer_does_not_change_its_own_reviewer(with_reviewer: Repo, sandbox: str) -> None:
    repo = with_reviewer
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", settings.replace("[run]", f"[run]\nsandbox = {sandbox}"))
    repo.commit("settings")
    play = f"[[rule]]\nwrite = {{ 'tools/review.py' = '''{REVIEW.format(score=10)}''' }}\nresult = {{}}\n"
    (repo.home / "script.toml").write_text(play, encoding="utf-8")
    table = repo.home / "tasks.csv"
    table.write_text("id,title,description,deps\nDEV-001,a,b,\nREVIEW-001,c,d,DEV-001\n", encoding="utf-8")

    done = repo.iterdev("run", "-y", "--tasks", str(table), "Fix it")
    accepted = repo.iterdev("accept", "--force")

    assert rows(repo.folder())["REVIEW-001"]["review_score"].startswith("2"), done.stdout + done.stderr
    assert 'Warning: "tools/review.py" is started or read because of iterdev.toml' in accepted.stdout


def test_accept_tells_that_the_work_changes_the_configuration(repo: Repo) -> None:
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    harm = settings.replace("[project]", f'[project]\nsetup = "touch {repo.home}/escaped"')
    repo.behave(**{"DEV-001": {"write": {"iterdev.toml": harm}}})

    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it")
    accepted = repo.iterdev("accept")

    assert 'Warning: "iterdev.toml" decides what iterdev runs, and the work changes it: git diff ' in accepted.stdout
    assert not (repo.home / "escaped").exists()


def test_git_settings_and_hooks_that_an_agent_changes_are_told_and_not_used(repo: Repo) -> None:
    touch = f"touch {repo.home}/escaped"
    run = (
        f"git config filter.evil.clean '{touch}; cat'; git config core.fsmonitor '{touch}'; git config user.name Evil;"
        f"printf '#!/bin/sh\\n{touch}\\n' > {repo.path}/.git/hooks/post-checkout;"
        f"chmod +x {repo.path}/.git/hooks/post-checkout; echo '* filter=evil' > .gitattributes"
    )
    repo.behave(**{"DEV-001": {"run": run}})

    done = repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it")
    before_accept = (repo.home / "escaped").exists()
    accepted = repo.iterdev("accept", "--json")

    changed = "core.fsmonitor, filter.evil.clean, hook post-checkout, user.name"
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"git settings or hooks of your repository changed meanwhile: {changed}" in done.stdout
    assert changed in accepted.stdout
    assert not before_accept


def test_filters_of_the_user_work_and_see_no_secret(repo: Repo) -> None:
    seen = repo.home / "seen"
    with (repo.home / ".gitconfig").open("a", encoding="utf-8") as file:
        file.write(f'[filter "upper"]\n\tclean = "env >> {seen}; tr a-z A-Z"\n\tsmudge = cat\n')
    repo.write(".gitattributes", "*.up filter=upper\n")
    repo.commit("a filter")
    repo.behave(**{"DEV-001": {"write": {"new.up": "hello\n"}}})

    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it", SECRET_TOKEN="the-key-of-the-user")

    assert repo.git("show", f"iterdev/{repo.folder().name}:new.up") == "HELLO"
    assert "PATH=" in Path(seen).read_text(encoding="utf-8")
    assert "the-key-of-the-user" not in Path(seen).read_text(encoding="utf-8")
