"""Two developers who change the same file side by side, with real git."""

import json

import pytest
from tests.app.conftest import Team
from tests.conflicts import TOGETHER, TOGETHER_AT_WORK, TWO_ROWS, collide, collided, resolve
from tests.conftest import Repo
from tests.session_files import left_behind, rows, statuses

pytestmark = pytest.mark.elsewhere

MERGE = """
for commit in $(git for-each-ref --format='%(objectname)' 'refs/iterdev/*/DEV-00?/1'); do
    git merge -q --no-edit "$commit" || true
done
printf '# One\\n# Two\\n' > README.md
git add README.md
git commit -q --no-edit || git commit -q -m together
"""

UNITE = """
other=$(git for-each-ref --format='%(objectname)' "refs/iterdev/*/${ITERDEV_TASK%-fix-conflict}/1")
git merge -q --no-edit $other || true
sed -i '/^[<=>]\\{7\\}/d' README.md
git add -A
git commit -q --no-edit
"""


@pytest.mark.requirement("R129", "R130")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_both_changes_are_present_in_the_end(repo: Repo, team: Team, engine: str) -> None:
    merge = {"write": {}, "run": MERGE}
    collide(repo, **{"DEV-001-fix-conflict": merge, "DEV-002-fix-conflict": merge})
    rows_by_hand = "id,description,deps\nDEV-001,one,\nDEV-002,two,\nVERIFY-001,both,DEV-001;DEV-002\n"

    done = team.run(table=rows_by_hand, engine=engine)

    folder = repo.folder(engine)
    second, fix = collided(folder)
    ledger = {entry["id"]: entry for entry in json.loads((folder / "task-ledger.json").read_text())["tasks"]}
    messages = (folder / ".msg" / "messages.jsonl").read_text()
    assert done.succeeded, done.lines
    assert set(statuses(folder).values()) == {"completed"}
    assert rows(folder)["VERIFY-001"]["deps"].endswith("fix-conflict") or fix in rows(folder)["VERIFY-001"]["deps"]
    assert repo.git("show", f"iterdev/{folder.name}:README.md") == "# One\n# Two"
    assert ledger[second]["conflict_info"] == {
        "status": "resolved",
        "conflicting_files": ["README.md"],
        "resolution_strategy": "manual",
        "resolved_by_task_id": fix,
    }
    assert f"  {second} conflict in README.md; being resolved by {fix}" in done.lines
    assert not any(f"{second} completed" in line for line in done.lines)
    assert f"(landed with {fix})" in (folder / "code" / "dev-log.md").read_text()
    assert '"conflict_detected"' in messages
    assert '"conflict_resolved"' in messages
    assert left_behind(repo) == []


@pytest.mark.requirement("R130")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_four_changes_of_one_place_are_all_present_in_the_end(repo: Repo, team: Team, engine: str) -> None:
    names = [f"DEV-00{number}" for number in range(1, 5)]
    crowd = TOGETHER_AT_WORK.format(home=repo.home, number=4)
    changes = {name: {"write": {"README.md": f"# {name}\n"}, "run": crowd} for name in names}
    repo.behave(**changes, **{f"{name}-fix-conflict": {"write": {}, "run": UNITE} for name in names})
    rows_by_hand = "id,description,deps\n" + "".join(f"{name},work,\n" for name in names)
    rows_by_hand += f"VERIFY-001,test,{';'.join(names)}\nREVIEW-001,look,{';'.join(names)}\n"

    done = team.run(table=rows_by_hand, engine=engine, concurrency=4)

    folder = repo.folder(engine)
    assert done.succeeded, done.lines
    assert set(statuses(folder).values()) == {"completed"}
    assert len([name for name in rows(folder) if name.endswith("-fix-conflict")]) == 3
    assert not [name for name in rows(folder) if name.count("-fix-conflict") > 1]
    assert sorted(repo.git("show", f"iterdev/{folder.name}:README.md").splitlines()) == [f"# {name}" for name in names]


@pytest.mark.requirement("R130")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_when_nobody_could_resolve_it_everything_says_that_the_work_has_not_landed(
    repo: Repo, team: Team, engine: str
) -> None:
    gives_up = {"write": {}, "result": {"status": "failed", "error": "too hard"}}
    collide(repo, **{"DEV-001-fix-conflict": gives_up, "DEV-002-fix-conflict": gives_up})

    done = team.run(table=TWO_ROWS, engine=engine)

    folder = repo.folder(engine)
    second, fix = collided(folder)
    kept = f"refs/iterdev/{folder.name}/{second}/1"
    told = f"conflict in README.md; {fix} failed: this work is not on the branch, it is kept as {kept}"
    ledger = {entry["id"]: entry for entry in json.loads((folder / "task-ledger.json").read_text())["tasks"]}
    assert not done.succeeded
    assert done.view.outcome.not_landed == {second: told}
    assert [(task.mark, task.note) for task in done.view.tasks if task.id == second] == [("[FAIL]", told)]
    assert ledger[second]["conflict_info"]["status"] == "detected"
    assert f"(not landed, see {fix})" in (folder / "code" / "dev-log.md").read_text()
    assert f"Conflict: in README.md; {fix} failed" in (folder / "context.md").read_text()
    assert repo.git("for-each-ref", f"refs/iterdev/{folder.name}/{fix}") == ""
    assert repo.git("show", f"{kept}:README.md") == ("# One" if second == "DEV-001" else "# Two")


@pytest.mark.requirement("R130")
def test_with_abort_the_second_one_is_done_again_on_what_landed_and_its_work_is_kept(repo: Repo, team: Team) -> None:
    again = {"write": {}, "run": "test $(wc -l < README.md) = 1 && echo again >> README.md"}
    collide(repo, **{"DEV-001-fix-conflict": again, "DEV-002-fix-conflict": again})
    settings = (repo.path / "iterdev.toml").read_text()
    repo.write("iterdev.toml", settings.replace("[run]", '[run]\nconflicts = "abort"'))

    done = team.run(table=TWO_ROWS)

    folder = repo.folder()
    aborted, fix = collided(folder)
    ledger = {entry["id"]: entry for entry in json.loads((folder / "task-ledger.json").read_text())["tasks"]}
    own, other = ("# One", "# Two") if aborted == "DEV-001" else ("# Two", "# One")
    assert done.succeeded, done.lines
    assert ledger[aborted]["conflict_info"]["resolution_strategy"] == "abort"
    assert ledger[aborted]["conflict_info"]["resolved_by_task_id"] == fix
    assert repo.git("show", f"refs/iterdev/{folder.name}/{aborted}/1:README.md") == own
    assert repo.git("show", f"iterdev/{folder.name}:README.md") == f"{other}\nagain"


@pytest.mark.hosts
@pytest.mark.requirement("R130")
def test_a_conflict_task_need_not_know_git_and_all_of_the_work_comes_in(repo: Repo, team: Team) -> None:
    resolve(repo, {"write": {"README.md": TOGETHER}})

    done = team.run(table=TWO_ROWS)

    left = left_behind(repo)
    branch, kept = f"iterdev/{repo.folder().name}", f"refs/iterdev/{repo.folder().name}"
    assert done.succeeded, done.lines
    assert {"one.txt", "two.txt"} <= set(repo.git("ls-tree", "--name-only", branch).splitlines())
    assert repo.git("show", f"{branch}:README.md") == TOGETHER.strip()
    for task in ("DEV-001", "DEV-002"):
        repo.git("merge-base", "--is-ancestor", f"{kept}/{task}/1", branch)
    assert left == []


@pytest.mark.requirement("R130")
def test_a_conflict_task_that_does_nothing_fails_after_it_was_told_what_is_missing(repo: Repo, team: Team) -> None:
    nothing = {"write": {}}
    resolve(repo, nothing, nothing, nothing)

    done = team.run(table=TWO_ROWS)

    second, fix = collided(repo.folder())
    problem = "README.md: conflict markers are left in line 1, 3, 5"
    asked = [str(call["prompt"]) for call in repo.calls() if call["task"] == fix]
    assert not done.succeeded
    assert problem in rows(repo.folder())[fix]["error"]
    assert [problem in prompt for prompt in asked] == [False, True, True]
    assert repo.git("show", f"iterdev/{repo.folder().name}:README.md") in {"# One", "# Two"}
    assert list(done.view.outcome.not_landed) == [second]


@pytest.mark.requirement("R130")
def test_what_git_had_merged_is_brought_back_by_a_conflict_task_that_lost_it(repo: Repo, team: Team) -> None:
    loses = {"write": {"README.md": TOGETHER}, "run": "rm one.txt two.txt; git checkout -q HEAD -- '*.txt'"}
    finds = {"write": {"one.txt": "1\n", "two.txt": "2\n"}}
    resolve(repo, loses, finds)

    done = team.run(table=TWO_ROWS)

    second, fix = collided(repo.folder())
    name = {"DEV-001": "one.txt", "DEV-002": "two.txt"}[second]
    again = [str(call["prompt"]) for call in repo.calls() if call["task"] == fix][1]
    assert done.succeeded, done.lines
    assert f"{name}: the change of {second}, which git had merged, is missing" in again
    assert name in repo.git("ls-tree", "--name-only", f"iterdev/{repo.folder().name}").splitlines()


@pytest.mark.requirement("R130")
@pytest.mark.parametrize("said", [None, ["README.md"], []])
def test_nothing_of_the_work_is_taken_only_if_the_conflict_task_says_so_and_then_you_are_warned(
    repo: Repo, team: Team, said: list[str] | None
) -> None:
    keeps = {"write": {}, "run": "git checkout -q HEAD -- README.md", "result": {"changed_files": said}}
    resolve(repo, keeps, keeps, keeps)

    done = team.run(table=TWO_ROWS)

    second, fix = collided(repo.folder())
    told = f"README.md: it has nothing of the change of {second}"
    assert any(told in line for line in (*done.lines, *done.view.warnings))
    assert any(text.startswith(f"{fix}: {told}") for text in done.view.warnings) == (said == [])
    assert (rows(repo.folder())[fix]["status"], done.succeeded) == (
        ("completed", True) if said == [] else ("failed", False)
    )
