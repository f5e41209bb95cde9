"""Two developers who change the same file side by side, with real git."""

import json

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import left_behind, rows, statuses
from tests.e2e.test_table_by_hand import CROWD, table

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


def collide(repo: Repo, **more: object) -> None:
    repo.behave(
        **{
            "DEV-001": {"write": {"README.md": "# One\n"}, "run": CROWD.format(together=2)},
            "DEV-002": {"write": {"README.md": "# Two\n"}, "run": CROWD.format(together=2)},
            **more,
        }
    )


@pytest.mark.requirement("R129", "R130")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_both_changes_are_present_in_the_end(repo: Repo, engine: str) -> None:
    merge = {"write": {}, "run": MERGE}
    collide(repo, **{"DEV-001-fix-conflict": merge, "DEV-002-fix-conflict": merge})
    rows_by_hand = "id,description,deps\nDEV-001,one,\nDEV-002,two,\nVERIFY-001,both,DEV-001;DEV-002\n"

    done = repo.iterdev("run", "-y", "--engine", engine, "--tasks", table(repo, rows_by_hand))

    folder = repo.folder(engine)
    (fix,) = [name for name in rows(folder) if name.endswith("-fix-conflict")]
    second = fix.removesuffix("-fix-conflict")
    ledger = {entry["id"]: entry for entry in json.loads((folder / "task-ledger.json").read_text())["tasks"]}
    messages = (folder / ".msg" / "messages.jsonl").read_text()
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(statuses(folder).values()) == {"completed"}
    assert rows(folder)["VERIFY-001"]["deps"].endswith("fix-conflict") or fix in rows(folder)["VERIFY-001"]["deps"]
    assert repo.git("show", f"iterdev/{folder.name}:README.md") == "# One\n# Two"
    assert ledger[second]["conflict_info"] == {
        "status": "resolved",
        "conflicting_files": ["README.md"],
        "resolution_strategy": "manual",
        "resolved_by_task_id": fix,
    }
    assert f"{second} conflict in README.md; being resolved by {fix}" in done.stdout
    assert f"{second} completed" not in done.stdout
    assert f"(landed with {fix})" in (folder / "code" / "dev-log.md").read_text()
    assert '"conflict_detected"' in messages
    assert '"conflict_resolved"' in messages
    assert left_behind(repo) == []


@pytest.mark.requirement("R130")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_four_changes_of_one_place_are_all_present_in_the_end(repo: Repo, engine: str) -> None:
    names = [f"DEV-00{number}" for number in range(1, 5)]
    crowd = CROWD.format(together=4)
    changes = {name: {"write": {"README.md": f"# {name}\n"}, "run": crowd} for name in names}
    repo.behave(**changes, **{f"{name}-fix-conflict": {"write": {}, "run": UNITE} for name in names})
    rows_by_hand = "id,description,deps\n" + "".join(f"{name},work,\n" for name in names)
    mine = table(repo, f"{rows_by_hand}VERIFY-001,test,{';'.join(names)}\nREVIEW-001,look,{';'.join(names)}\n")

    done = repo.iterdev("run", "-y", "-c", "4", "--engine", engine, "--tasks", mine)

    folder = repo.folder(engine)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(statuses(folder).values()) == {"completed"}
    assert len([name for name in rows(folder) if name.endswith("-fix-conflict")]) == 3
    assert not [name for name in rows(folder) if name.count("-fix-conflict") > 1]
    assert sorted(repo.git("show", f"iterdev/{folder.name}:README.md").splitlines()) == [f"# {name}" for name in names]


@pytest.mark.requirement("R130")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_when_nobody_could_resolve_it_everything_says_that_the_work_has_not_landed(repo: Repo, engine: str) -> None:
    gives_up = {"write": {}, "result": {"status": "failed", "error": "too hard"}}
    collide(repo, **{"DEV-001-fix-conflict": gives_up, "DEV-002-fix-conflict": gives_up})
    mine = table(repo, "id,description\nDEV-001,one\nDEV-002,two\n")

    done = repo.iterdev("run", "-y", "--engine", engine, "--tasks", mine)

    folder = repo.folder(engine)
    (fix,) = [name for name, status in statuses(folder).items() if status == "failed"]
    second = fix.removesuffix("-fix-conflict")
    kept = f"refs/iterdev/{folder.name}/{second}/1"
    told = f"conflict in README.md; {fix} failed: this work is not on the branch, it is kept as {kept}"
    ledger = {entry["id"]: entry for entry in json.loads((folder / "task-ledger.json").read_text())["tasks"]}
    assert done.returncode == 1
    assert f"  not landed {second}: {told}\n" in done.stdout
    assert f"[FAIL] {second}".ljust(len(f"[FAIL] {fix}")) + f" (developer) -> {told}" in repo.iterdev("status").stdout
    assert ledger[second]["conflict_info"]["status"] == "detected"
    assert f"(not landed, see {fix})" in (folder / "code" / "dev-log.md").read_text()
    assert f"Conflict: in README.md; {fix} failed" in (folder / "context.md").read_text()
    assert repo.git("show", f"{kept}:README.md") == ("# One" if second == "DEV-001" else "# Two")


@pytest.mark.requirement("R130")
def test_with_abort_the_second_one_fails_and_its_work_is_kept(repo: Repo) -> None:
    collide(repo)
    settings = (repo.path / "iterdev.toml").read_text()
    repo.write("iterdev.toml", settings.replace("[run]", '[run]\nconflicts = "abort"'))

    done = repo.iterdev("run", "-y", "--tasks", table(repo, "id,description\nDEV-001,one\nDEV-002,two\n"))

    (lost,) = [name for name, status in statuses(repo.folder()).items() if status == "failed"]
    assert done.returncode == 1
    assert "README.md" in rows(repo.folder())[lost]["error"]
    kept = repo.git("show", f"refs/iterdev/{repo.folder().name}/{lost}/1:README.md")
    assert kept == ("# One" if lost == "DEV-001" else "# Two")
