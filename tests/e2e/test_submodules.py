"""A project with a submodule, from the request to the accepted work."""

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import script
from tests.session_files import left_behind, statuses


@pytest.fixture
def shop(repo: Repo) -> Repo:
    """A project whose tests need its submodule."""
    origin = repo.home / "shop"
    repo.git("init", "-q", "-b", "main", str(origin))
    (origin / "prices.txt").write_text("1\n")
    repo.git("-C", str(origin), "add", "-A")
    repo.git("-C", str(origin), "commit", "-q", "-m", "start")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(origin), "lib")
    settings = (repo.path / "iterdev.toml").read_text().replace('test = "true"', 'test = "test -e lib/prices.txt"')
    repo.write("iterdev.toml", settings)
    repo.commit("a submodule")
    return repo


@pytest.mark.parametrize(
    "script",
    ["cd lib && echo 2 > more.txt && git add -A && git commit -qm more", "echo 2 > lib/more.txt"],
    ids=["committed", "not committed"],
)
def test_work_in_a_submodule_lands_and_can_be_accepted(shop: Repo, script: str) -> None:
    shop.behave(**{"DEV-001": {"write": {}, "run": script}})

    run = shop.iterdev("run", "-y", "--pipeline", "patch", "Fix the prices")
    left = left_behind(shop)
    accepted = shop.iterdev("accept")

    session, work = shop.folder().name, shop.git("rev-parse", "main:lib")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "set aside" not in run.stdout + run.stderr
    assert statuses(shop.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed"}
    assert left == []
    assert accepted.returncode == 0, accepted.stderr
    assert f"git -C lib push origin iterdev/{session}" in accepted.stdout
    for ref in (f"refs/iterdev/{session}/DEV-001/1", f"refs/heads/iterdev/{session}"):
        assert shop.git("-C", "lib", "rev-parse", ref) == work
    assert shop.git("-C", "lib", "show", f"{work}:more.txt") == "2"
    assert len(shop.git("-C", "lib", "worktree", "list").splitlines()) == 1


def test_in_the_sandbox_files_of_a_submodule_are_changed_and_iterdev_commits_them(shop: Repo) -> None:
    work = "cd lib && git log --oneline && echo 2 > more.txt && ! git commit -qam x && rm .git"
    script(shop, f"[[rule]]\nrole = 'developer'\nrun = '''{work}'''\nresult = {{}}\n")
    settings = (shop.path / "iterdev.toml").read_text().replace("[run]", "[run]\nsandbox = true")
    shop.write("iterdev.toml", settings.replace('test = "true"', 'test = "cd lib && test -e more.txt"'))
    shop.commit("a sandbox")

    run = shop.iterdev("run", "-y", "--pipeline", "patch", "Fix the prices")

    left, session = left_behind(shop), shop.folder().name
    work = shop.git("rev-parse", f"iterdev/{session}:lib")
    assert statuses(shop.folder())["DEV-001"] == "completed", run.stdout + run.stderr
    assert shop.git("-C", "lib", "show", f"{work}:more.txt") == "2"
    assert shop.git("-C", "lib", "rev-parse", f"refs/iterdev/{session}/DEV-001/1") == work
    assert left == []
