"""A table that somebody made by hand, and changes that somebody makes in the table of a session."""

import json
import signal
from pathlib import Path

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Background, eventually, script
from tests.session_files import left_behind, rows, statuses

# Every agent waits until as many as are allowed have begun, so that the most there ever were can be counted.
CROWD = """
echo start >> {home}/crowd
until test $(grep -c start {home}/crowd) -ge {together}; do sleep 0.02; done
echo end >> {home}/crowd
"""


def table(repo: Repo, text: str) -> str:
    path = repo.home / "mine.csv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def most_at_once(repo: Repo) -> int:
    now = most = 0
    for word in (repo.home / "crowd").read_text().split():
        now += 1 if word == "start" else -1
        most = max(most, now)
    return most


@pytest.mark.requirement("R45", "R47", "R64", "R65")
def test_the_rows_of_a_table_are_run_in_waves_after_their_dependencies(repo: Repo) -> None:
    mine = table(
        repo,
        "id,title,description,deps\n"
        "DEV-003,Roof,put it on,DEV-001;DEV-002\n"
        "DEV-001,Walls,build them,DEV-002\n"
        "DEV-002,Floor,lay it,\n"
        "REVIEW-001,Look,look at it,DEV-003\n",
    )

    done = repo.iterdev("run", "-y", "--tasks", mine, "Build a house")

    seen = rows(repo.folder())
    assert done.returncode == 0, done.stderr
    assert {name: row["wave"] for name, row in seen.items()} == {
        "DEV-003": "3",
        "DEV-001": "2",
        "DEV-002": "1",
        "REVIEW-001": "4",
    }
    assert [call["task"] for call in repo.calls()] == ["DEV-002", "DEV-001", "DEV-003", "REVIEW-001"]
    assert seen["DEV-001"]["role"] == "developer"
    assert "ids-build-a-house-" in repo.folder().name
    assert left_behind(repo) == []


def test_without_a_text_the_session_is_named_after_the_table(repo: Repo) -> None:
    mine = table(repo, "id,description\nDEV-001,do it\n")

    done = repo.iterdev("run", "-y", "--tasks", mine)

    assert done.returncode == 0, done.stderr
    assert "mine-csv" in repo.folder().name


def test_the_description_of_a_row_is_what_its_agent_reads(repo: Repo) -> None:
    mine = table(repo, 'id,description,context_from,deps\nDEV-001,"Say ""hello"",\nthen stop",,\n')

    repo.iterdev("run", "-y", "--tasks", mine)

    prompt = str(repo.calls()[0]["prompt"])
    assert 'Say "hello",' in prompt
    assert "then stop" in prompt


@pytest.mark.requirement("R2")
@pytest.mark.parametrize(("options", "limit"), [([], 3), (["-c", "2"], 2), (["--concurrency", "4"], 4)])
def test_no_more_agents_run_at_once_than_allowed(repo: Repo, options: list[str], limit: int) -> None:
    repo.behave(developer={"run": CROWD.format(home=repo.home, together=limit)})
    ids = [f"DEV-{number:03d}" for number in range(1, 6)]
    mine = table(repo, "id,description\n" + "".join(f"{name},do it\n" for name in ids))

    done = repo.iterdev("run", "-y", *options, "--tasks", mine)

    assert done.returncode == 0, done.stdout
    assert most_at_once(repo) == limit


@pytest.mark.requirement("R59", "R60", "R61", "R62")
def test_interactive_rows_run_after_the_others_of_their_wave_are_asked_once_to_finish_and_leave_a_result(
    repo: Repo,
) -> None:
    script(
        repo,
        """
        [[rule]]
        task = "DEV-003"
        attempt = 1
        run = "echo DEV-003 >> $HOME/order; cp $ITERDEV_SESSION_DIR/wave-1.csv $HOME/batch"
        hang = true

        [[rule]]
        task = "DEV-003"
        run = "cat > $HOME/urge"
        write = { "three.txt" = "x" }
        result = {}

        [[rule]]
        task = "DEV-004"
        run = "echo DEV-004 >> $HOME/order"
        hang = true

        [[rule]]
        run = "echo {task} >> $HOME/order"
        write = { "{task}.txt" = "x" }
        result = {}
        """.replace("$HOME", str(repo.home)),
        "[limits]\ninteractive = 1\nfinish = 2\n",
    )
    mine = table(
        repo,
        "id,description,exec_mode\nDEV-003,slow,interactive\nDEV-004,never,interactive\n"
        "DEV-001,one,csv-wave\nDEV-002,two,csv-wave\n",
    )

    done = repo.iterdev("run", "-y", "--tasks", mine)

    folder = repo.folder()
    order = (repo.home / "order").read_text().split()
    assert done.returncode == 1
    assert statuses(folder) == {
        "DEV-003": "completed",
        "DEV-004": "failed",
        "DEV-001": "completed",
        "DEV-002": "completed",
    }
    assert set(order[:2]) == {"DEV-001", "DEV-002"}
    assert order[2] == "DEV-003"
    assert "DEV-003" not in (repo.home / "batch").read_text()
    assert (repo.home / "urge").read_text().strip()
    assert "asked to finish" in rows(folder)["DEV-004"]["error"]
    results = {name: json.loads((folder / "interactive" / f"{name}-result.json").read_text()) for name in order[2:4]}
    assert results["DEV-003"]["status"] == "completed"
    assert results["DEV-004"]["status"] == "failed"
    assert left_behind(repo) == []


def change(folder: Path, old: str, new: str) -> None:
    path = folder / "tasks.csv"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_a_row_changed_in_the_table_of_a_waiting_session_is_what_is_run(repo: Repo) -> None:
    repo.iterdev("run", "--pipeline", "patch", "Fix it")
    change(repo.folder(), "PURPOSE: ", "PURPOSE: in the style of the old masters; ")

    done = repo.iterdev("resume", "-y")

    assert done.returncode == 0, done.stderr
    assert "in the style of the old masters" in str(repo.calls()[0]["prompt"])
    assert "in the style of the old masters" in rows(repo.folder())["DEV-001"]["description"]


@pytest.mark.requirement("R49", "R67")
def test_a_status_changed_by_hand_counts(repo: Repo) -> None:
    repo.iterdev("run", "--pipeline", "sprint", "Add a greeting")
    change(repo.folder(), '"pending"', '"completed"')

    done = repo.iterdev("resume", "-y")

    assert done.returncode == 0, done.stderr
    assert [call["task"] for call in repo.calls()] == ["DEV-001", "REVIEW-001"]


def test_a_row_added_by_hand_is_run(repo: Repo) -> None:
    repo.iterdev("run", "--pipeline", "patch", "Fix it")
    row = (
        '"DEV-002","More","and this too","developer","patch","1","0","DEV-001","","csv-wave","","pending","","","",""\n'
    )
    with (repo.folder() / "tasks.csv").open("a", encoding="utf-8") as file:
        file.write(row)

    done = repo.iterdev("resume", "-y")

    assert done.returncode == 0, done.stderr
    assert statuses(repo.folder())["DEV-002"] == "completed"
    assert rows(repo.folder())["DEV-002"]["wave"] == "2"


@pytest.mark.requirement("R67")
def test_what_depends_on_a_task_that_was_left_out_is_run(repo: Repo) -> None:
    mine = table(repo, "id,description,deps,status\nA,do a,,skipped\nB,do b,A,pending\n")

    done = repo.iterdev("run", "-y", "--tasks", mine)

    assert statuses(repo.folder()) == {"A": "skipped", "B": "completed"}
    assert [call["role"] for call in repo.calls()] == ["developer"]
    assert "A: left out in tasks.csv" in done.stdout
    assert repo.iterdev("retry").returncode == 2


def test_a_row_added_while_agents_work_in_the_sandbox_is_run_too(repo: Repo) -> None:
    script(
        repo,
        f"""
        [[rule]]
        task = "DEV-001"
        run = "until test -e {repo.path}/go; do sleep 0.05; done"
        write = {{ "one.txt" = "x" }}
        result = {{}}

        [[rule]]
        write = {{ "{{task}}.txt" = "x" }}
        result = {{}}
        """,
    )
    settings = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", settings.replace("[run]\n", "[run]\nsandbox = true\n"))
    row = (
        '"DEV-002","More","and this too","developer","patch","1","0","DEV-001","","csv-wave","","pending","","","",""\n'
    )

    with Background(repo, "run", "-y", "--pipeline", "patch", "Fix it") as running:
        eventually(lambda: list(repo.path.glob(".workflow/.csv-wave/*/wave-1.csv")), "the first wave")
        with (repo.folder() / "tasks.csv").open("a", encoding="utf-8") as file:
            file.write(row)
        (repo.path / "go").touch()
        done = running.end()

    assert done.returncode == 0, done.stderr
    assert statuses(repo.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed", "DEV-002": "completed"}


def test_a_row_added_while_other_agents_work_is_kept_aside_with_the_way_to_add_it(repo: Repo) -> None:
    repo.behave(**{"DEV-001": {"run": "until test -e $HOME/go; do sleep 0.05; done"}})
    row = (
        '"DEV-002","More","and this too","developer","patch","1","0","DEV-001","","csv-wave","","pending","","","",""\n'
    )

    with Background(repo, "run", "-y", "--pipeline", "patch", "Fix it") as running:
        running.until_agent_works_on("DEV-001")
        eventually((repo.folder() / "wave-1.csv").exists, "the first wave")
        with (repo.folder() / "tasks.csv").open("a", encoding="utf-8") as file:
            file.write(row)
        (repo.home / "go").touch()
        done = running.end()

    assert done.returncode == 0, done.stderr
    assert statuses(repo.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed"}
    assert rows(repo.folder(), "tasks.refused.csv")["DEV-002"]["title"] == "More"
    assert "DEV-002 is new" in done.stdout


def test_a_row_added_after_the_run_was_stopped_is_run(repo: Repo) -> None:
    repo.behave(**{"DEV-001#1": {"sleep": 600}})
    row = (
        '"DEV-002","More","and this too","developer","patch","1","0","DEV-001","","csv-wave","","pending","","","",""\n'
    )

    with Background(repo, "run", "-y", "--pipeline", "patch", "Fix it") as running:
        running.until_agent_works_on("DEV-001")
        running.process.send_signal(signal.SIGINT)
        assert running.end().returncode == 130
    with (repo.folder() / "tasks.csv").open("a", encoding="utf-8") as file:
        file.write(row)
    done = repo.iterdev("resume")

    assert done.returncode == 0, done.stderr
    assert statuses(repo.folder())["DEV-002"] == "completed"
