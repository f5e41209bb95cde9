"""Workers that are started one by one, and what they say when they are done."""

import csv
import json

import pytest
from tests.app.conftest import commit_on_branch
from tests.conftest import Repo
from tests.session_files import left_behind, messages, rows, statuses


def begun(repo: Repo, engine: str = "beat") -> str:
    """A session whose design is done, and nothing else."""
    repo.iterdev("run", "--pipeline", "multi-sprint", "--engine", engine, "Add a greeting")
    session = repo.folder(engine).name
    repo.iterdev("answer", session, "plan", "approve")
    assert repo.iterdev("resume", session, "--step", "--wait").returncode == 0
    return session


def ledger(repo: Repo) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = json.loads((repo.folder("beat") / "task-ledger.json").read_text())
    return found


def worked(repo: Repo) -> list[object]:
    return [call["task"] for call in repo.calls()]


@pytest.mark.requirement("R6", "R39", "R92")
@pytest.mark.parametrize("words", [("--role", "developer"), ("--role=developer",)])
def test_a_developer_goes_on_while_there_is_work_of_its_own(repo: Repo, words: tuple[str, ...]) -> None:
    session = begun(repo)

    done = repo.iterdev("run", *words, session)

    assert done.returncode == 0, done.stderr
    assert worked(repo) == ["DESIGN-001", "DEV-001", "DEV-002"]
    assert statuses(repo.folder("beat"))["VERIFY-001"] == "pending"
    assert left_behind(repo) == []


@pytest.mark.requirement("R39", "R92")
def test_any_other_worker_does_one_task(repo: Repo) -> None:
    begun(repo)
    repo.iterdev("run", "--role", "developer")

    done = repo.iterdev("run", "--role", "reviewer")

    assert done.returncode == 0
    assert worked(repo)[-1] == "REVIEW-001"
    assert statuses(repo.folder("beat"))["REVIEW-001"] == "completed"


@pytest.mark.requirement("R92")
def test_a_worker_for_which_nothing_is_ready_does_nothing(repo: Repo) -> None:
    begun(repo)

    done = repo.iterdev("run", "--role", "reviewer")

    assert done.returncode == 0
    assert "Nothing is ready for the reviewer" in done.stdout
    assert worked(repo) == ["DESIGN-001"]


@pytest.mark.requirement("R178")
def test_a_developer_stops_after_three_errors(repo: Repo) -> None:
    table = "id,description\n" + "".join(f"DEV-00{number},work\n" for number in range(1, 6))
    repo.behave(developer={"result": {"status": "failed", "error": "it broke"}})
    repo.write("../tasks.csv", table)
    repo.iterdev("run", "--engine", "beat", "--tasks", "../tasks.csv")
    repo.iterdev("answer", repo.folder("beat").name, "plan", "approve")

    repo.iterdev("run", "--role", "developer")

    assert worked(repo) == ["DEV-001", "DEV-002", "DEV-003"]


def rewrite(repo: Repo, engine: str, task: str, **cells: str) -> None:
    """Changes cells of a row of the table, as a person would in an editor of tables."""
    path = repo.folder(engine) / "tasks.csv"
    found = rows(repo.folder(engine))
    found[task] |= cells
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(found[task]))
        writer.writeheader()
        writer.writerows(found.values())


@pytest.mark.requirement("R178")
def test_a_developer_that_does_several_tasks_sends_one_final_message(repo: Repo) -> None:
    session = begun(repo)
    repo.iterdev("run", "--role", "developer")

    told = repo.iterdev("team", "list", "--session-id", session, "--from", "developer", "--json")

    heard = json.loads(told.stdout)["messages"]
    steps = [message for message in heard if message["type"] == "state_update"]
    (last,) = (message for message in heard if message["to"] == "coordinator")
    assert [step["data"]["task"] for step in steps] == ["DEV-001", "DEV-002"]
    assert steps[0]["data"]["files_modified"] == ["DEV-001.txt"]
    assert last == heard[-1]
    assert last["type"] == "dev_complete"
    assert last["summary"].startswith("[developer] completed DEV-001, DEV-002; 3 of 5 tasks")


@pytest.mark.requirement("R178")
@pytest.mark.parametrize(("role", "kind"), [("tester", "verify_passed"), ("reviewer", "review_passed")])
def test_any_other_worker_sends_one_message_for_its_only_task(repo: Repo, role: str, kind: str) -> None:
    session = begun(repo)
    repo.iterdev("run", "--role", "developer")
    repo.iterdev("run", "--role", role)

    told = repo.iterdev("team", "list", "--session-id", session, "--from", role, "--json")

    assert [message["type"] for message in json.loads(told.stdout)["messages"]] == [kind]


@pytest.mark.requirement("R93")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_worker_whose_artifact_is_there_reports_it_and_does_not_make_it_again(repo: Repo, engine: str) -> None:
    begun(repo, engine)
    rewrite(repo, engine, "DESIGN-001", status="pending")

    done = repo.iterdev("run", "--role", "architect")

    assert done.returncode == 0, done.stderr
    assert worked(repo) == ["DESIGN-001"]
    assert statuses(repo.folder(engine))["DESIGN-001"] == "completed"
    assert len(messages(repo.folder(engine), "design_ready")) == 2


@pytest.mark.requirement("R93")
@pytest.mark.parametrize("task", ["DESIGN-001", "DEV-001", "DEV-002", "REVIEW-001", "VERIFY-001"])
def test_the_workers_of_a_beat_look_for_their_artifacts_too(repo: Repo, task: str) -> None:
    session = begun(repo)
    repo.iterdev("run", "--role", "developer")
    repo.iterdev("run", "--role", "reviewer" if task == "REVIEW-001" else "tester")
    calls = worked(repo).count(task)
    before = rows(repo.folder("beat"))[task]
    rewrite(repo, "beat", task, status="pending", review_score="", gc_signal="")

    done = repo.iterdev("resume", session, "--step", "--wait")

    assert done.returncode == 0, done.stderr
    assert worked(repo).count(task) == calls
    assert before["status"] == "completed"
    assert rows(repo.folder("beat"))[task] == before
    assert repo.iterdev("replay", session).returncode == 0


@pytest.mark.requirement("R67")
def test_a_row_set_back_in_a_session_of_waves_is_done_again(repo: Repo) -> None:
    begun(repo, "wave")
    rewrite(repo, "wave", "DESIGN-001", status="pending")

    repo.iterdev("resume", "--step", "--wait")

    assert worked(repo) == ["DESIGN-001", "DESIGN-001"]


def test_a_row_whose_findings_were_emptied_is_done_again(repo: Repo) -> None:
    begun(repo)
    rewrite(repo, "beat", "DESIGN-001", status="pending", findings="")

    repo.iterdev("run", "--role", "architect")

    assert worked(repo) == ["DESIGN-001", "DESIGN-001"]


def test_what_was_rolled_back_is_done_again(repo: Repo) -> None:
    session = begun(repo)
    repo.iterdev("rollback", session, "DESIGN-001")

    repo.iterdev("run", "--role", "architect")

    assert worked(repo) == ["DESIGN-001", "DESIGN-001"]


def test_a_review_of_older_work_is_made_again(repo: Repo) -> None:
    begun(repo)
    repo.iterdev("run", "--role", "developer")
    repo.iterdev("run", "--role", "reviewer")
    rewrite(repo, "beat", "DEV-002", status="pending", findings="")
    repo.iterdev("run", "--role", "developer")
    rewrite(repo, "beat", "REVIEW-001", status="pending")

    repo.iterdev("run", "--role", "reviewer")

    assert worked(repo)[-2:] == ["DEV-002", "REVIEW-001"]


@pytest.mark.requirement("R7")
def test_an_unknown_role_is_refused_with_the_roles_there_are(repo: Repo) -> None:
    refused = repo.iterdev("run", "--role", "manager", "Add a greeting")

    assert refused.returncode == 2
    assert '"manager"' in refused.stderr
    assert "architect, developer, tester, reviewer" in refused.stderr


@pytest.mark.requirement("R7")
def test_a_role_whose_file_is_missing_is_refused_with_the_path_that_was_expected(repo: Repo) -> None:
    settings = (repo.path / "iterdev.toml").read_text()
    repo.write("iterdev.toml", settings + '\n[roles.developer]\nfile = "team/developer.md"\n')

    refused = repo.iterdev("run", "-y", "Add a greeting")

    assert refused.returncode == 2
    assert f'"{repo.path / "team/developer.md"}"' in refused.stderr
    assert repo.calls() == []


def test_the_file_of_a_role_is_part_of_its_prompts_and_of_no_others(repo: Repo) -> None:
    settings = (repo.path / "iterdev.toml").read_text()
    repo.write("iterdev.toml", settings + '\n[roles.developer]\nfile = "team/developer.md"\n')
    repo.write("team/developer.md", "Write British English.\n")

    repo.iterdev("run", "-y", "--pipeline", "sprint", "Add a greeting")

    told = {call["role"] for call in repo.calls() if "British English" in str(call["prompt"])}
    assert told == {"developer"}


@pytest.mark.requirement("R5")
def test_the_coordinator_is_what_runs_without_a_role(repo: Repo) -> None:
    done = repo.iterdev("run", "-y", "--role", "coordinator", "--pipeline", "patch", "Add a greeting")

    assert done.returncode == 0, done.stderr
    assert set(statuses(repo.folder()).values()) == {"completed"}


@pytest.mark.requirement("R8")
@pytest.mark.parametrize(("words", "name"), [((), "iterdev"), (("--team", "night shift"), "night shift")])
def test_a_team_has_a_name(repo: Repo, words: tuple[str, ...], name: str) -> None:
    repo.iterdev("run", "-y", "--pipeline", "patch", *words, "Add a greeting")

    assert f'"team_name": "{name}"' in (repo.folder() / "session.json").read_text()


@pytest.mark.requirement("R116", "R117")
@pytest.mark.parametrize("text", ["[developer] DEV-001 is done", "[developer] all of it is there"])
def test_a_worker_from_elsewhere_calls_back_and_its_task_is_done(repo: Repo, text: str) -> None:
    commit_on_branch(repo, begun(repo))

    repo.iterdev("run", "-y", text)

    assert "DEV-001" not in worked(repo)
    assert statuses(repo.folder("beat"))["DEV-001"] == "completed"
    assert worked(repo)[:2] == ["DESIGN-001", "DEV-002"]


@pytest.mark.requirement("R116", "R131")
@pytest.mark.parametrize("text", ["DEV-001 is done", "DEV-001: done", "DEV-001 is there. [developer]"])
def test_a_task_is_recognised_by_its_id_and_leaves_a_message_and_a_way_back(repo: Repo, text: str) -> None:
    session = begun(repo)
    commit_on_branch(repo, session)

    done = repo.iterdev("run", text)

    entry = next(row for row in ledger(repo)["tasks"] if row["id"] == "DEV-001")
    assert done.returncode == 0, done.stderr
    assert worked(repo)[:2] == ["DESIGN-001", "DEV-002"]
    assert entry["status"] == "completed"
    assert entry["completed_at"]
    assert "snapshot-DEV-001-" in str(entry["rollback_info"])
    assert messages(repo.folder("beat"), "dev_complete")[0].startswith("[developer] DEV-001 completed: ")
    assert repo.iterdev("replay", session).returncode == 0
    assert repo.iterdev("rollback", session, "DEV-001").returncode == 0


@pytest.mark.requirement("R116")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[reviewer] REVIEW-001 is fine", ("REVIEW-001 cannot be completed yet", "waits for DEV-002", "iterdev why")),
        ("DEV-002 is done", ("DEV-002 cannot be completed yet", "waits for DEV-001", "iterdev why")),
        ("[developer] REVIEW-001 is fine", ("REVIEW-001 is a task of the reviewer, not of the developer",)),
        ("DESIGN-001 is done", ("DESIGN-001 is completed already",)),
        ("[tester] all green", ("The tester has no open task",)),
    ],
)
def test_a_callback_out_of_turn_is_refused_and_changes_nothing(repo: Repo, text: str, words: tuple[str, ...]) -> None:
    begun(repo)
    before = rows(repo.folder("beat"))

    refused = repo.iterdev("run", text)

    assert refused.returncode == 2
    assert [word for word in words if word not in refused.stderr] == []
    assert rows(repo.folder("beat")) == before
    assert worked(repo) == ["DESIGN-001"]


@pytest.mark.requirement("R116")
@pytest.mark.parametrize(
    ("text", "role"),
    [("[reviewer] REVIEW-001 is fine", "reviewer"), ("VERIFY-001 passed", "tester"), ("[tester] green", "tester")],
)
def test_no_verdict_is_taken_on_a_word(repo: Repo, text: str, role: str) -> None:
    session = begun(repo)
    repo.iterdev("run", "--role", "developer")

    refused = repo.iterdev("run", text)

    assert refused.returncode == 2
    assert "cannot be completed by a message" in refused.stderr
    assert f"iterdev run --role {role} {session}" in refused.stderr
    assert statuses(repo.folder("beat"))["REVIEW-001"] == "pending"
    assert repo.iterdev("run", "--role", role, session).returncode == 0


@pytest.mark.requirement("R116")
def test_a_request_with_a_tag_in_it_beside_an_open_session_completes_nothing(repo: Repo) -> None:
    begun(repo)
    before = rows(repo.folder("beat"))

    done = repo.iterdev("run", "-y", "--pipeline", "patch", "Add a [developer] section to the README")

    assert done.returncode == 0, done.stderr
    assert rows(repo.folder("beat")) == before
    assert set(statuses(repo.folder()).values()) == {"completed"}


@pytest.mark.requirement("R95", "R116")
def test_a_worker_cannot_call_back_for_another_while_the_engine_runs(repo: Repo) -> None:
    call = f"cd {repo.path}; iterdev run '[architect] DESIGN-001 is done' 2> $HOME/said; echo $? > $HOME/code"
    repo.behave(architect={"run": call})

    done = repo.iterdev("run", "-y", "--pipeline", "sprint", "--engine", "beat", "Add a greeting")

    assert done.returncode == 0, done.stderr
    assert (repo.home / "code").read_text().strip() == "2"
    assert "`iterdev run` cannot be used inside of the attempt" in (repo.home / "said").read_text()
    assert worked(repo) == ["DESIGN-001", "DEV-001", "REVIEW-001"]


def test_a_request_that_begins_with_an_unknown_id_or_has_a_tag_inside_begins_a_session(repo: Repo) -> None:
    first = repo.iterdev("run", "-y", "--pipeline", "patch", "DEV-007 is the number on the badge")
    second = repo.iterdev("run", "-y", "--pipeline", "patch", "Fix the [developer] page")

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert len(list((repo.path / ".workflow" / ".csv-wave").iterdir())) == 2


def test_a_capability_gap_is_put_to_the_user_who_gives_it_a_row(repo: Repo) -> None:
    session = begun(repo)

    asked = repo.iterdev("run", "capability_gap: somebody who can audit the licences")
    found = rows(repo.folder("beat"))
    row = found["DEV-001"] | {"id": "REVIEW-007", "title": "Licences", "role": "reviewer", "deps": "DEV-002"}
    with (repo.folder("beat") / "tasks.csv").open("a", newline="", encoding="utf-8") as file:
        csv.DictWriter(file, list(row)).writerow(row)
    repo.iterdev("answer", session, "capability-coordinator", "go-on")
    done = repo.iterdev("resume", session)

    assert asked.returncode == 5
    assert "somebody who can audit the licences. To have it done, add a row for the reviewer" in asked.stdout
    assert messages(repo.folder("beat"), "capability_gap") == ["[coordinator] somebody who can audit the licences"]
    assert done.returncode == 0, done.stderr
    assert statuses(repo.folder("beat"))["REVIEW-007"] == "completed"


@pytest.mark.requirement("R12", "R120")
@pytest.mark.parametrize("words", [("--resume",), ("--resume", "greeting")])
def test_an_interrupted_session_goes_on_with_resume_as_an_option(repo: Repo, words: tuple[str, ...]) -> None:
    session = begun(repo)

    done = repo.iterdev("run", *words)

    assert done.returncode == 0, done.stderr
    assert f"{session}: 5 completed" in done.stdout
