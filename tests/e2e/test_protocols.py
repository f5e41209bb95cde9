"""Locks, checkpoints, feedback and debt as users and agents meet them: by the real command."""

import json
import subprocess

import pytest
from tests.conftest import Repo
from tests.e2e.conftest import Background, agent_at_work, eventually
from tests.session_files import document, left_behind, messages, rows, statuses

LOCK = 'iterdev lock acquire --session-id "$ITERDEV_SESSION" --task "$ITERDEV_TASK" --role "$ITERDEV_ROLE" --resource'
TABLE = "id,description,role\nDEV-001,one,developer\nDEV-002,two,developer\n"


@pytest.fixture
def session(repo: Repo) -> str:
    """A session that waits for its plan to be approved: it has tasks, and no engine."""
    repo.iterdev("run", "--pipeline", "patch", "Fix it")
    return repo.folder().name


def lock(
    repo: Repo, session: str, operation: str, resource: str, task: str, role: str = "developer"
) -> subprocess.CompletedProcess[str]:
    names = ("--session-id", session, "--resource", resource, "--task", task, "--role", role)
    return repo.iterdev("lock", operation, *names)


def told(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    assert done.returncode == 0, done.stderr
    loaded: dict[str, object] = json.loads(done.stdout)
    return loaded


def meta(repo: Repo) -> dict[str, object]:
    return document(repo.folder() / ".msg" / "meta.json")


@pytest.mark.requirement("R124", "R125", "R126")
def test_a_lock_is_granted_refused_renewed_and_released(repo: Repo, session: str) -> None:
    granted = lock(repo, session, "acquire", "src/a.py", "DEV-001")
    again = lock(repo, session, "acquire", "src/a.py", "DEV-001")
    refused = lock(repo, session, "acquire", "src/a.py", "VERIFY-001", "tester")
    listed = repo.iterdev("lock", "list", "--session-id", session).stdout
    held = told(repo.iterdev("lock", "list", "--session-id", session, "--json"))
    why = repo.iterdev("why", session, "VERIFY-001").stdout
    theirs = lock(repo, session, "release", "src/a.py", "VERIFY-001", "tester")
    released = lock(repo, session, "release", "src/a.py", "DEV-001")
    after = lock(repo, session, "acquire", "src/a.py", "VERIFY-001", "tester")

    codes = [done.returncode for done in (granted, again, refused, theirs, released, after)]
    assert codes == [0, 0, 1, 0, 0, 0]
    assert "DEV-001" in refused.stderr
    assert "hint: " in refused.stderr
    assert refused.stdout == ""
    assert "src/a.py  DEV-001 (developer)" in listed
    assert "VERIFY-001 waits for src/a.py" in listed
    assert held["resource_locks"]["src/a.py"]["locked_by_task_id"] == "DEV-001"
    assert 'the lock on "src/a.py", held by DEV-001 (developer)' in why
    assert "does not hold" in theirs.stdout
    assert meta(repo)["resource_locks"]["src/a.py"]["holder_role"] == "tester"
    assert len(messages(repo.folder(), "resource_locked")) == 2
    assert len(messages(repo.folder(), "resource_contention")) == 1
    assert len(messages(repo.folder(), "resource_unlocked")) == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("lock acquire --session-id no-such --resource a --task DEV-001 --role developer", '"no-such"'),
        ("lock acquire --session-id ids --resource a --task DEV-001 --role develper", '"develper"'),
        ("lock acquire --session-id ids --resource a --task ../x --role developer", '"../x"'),
        ("lock acquire --session-id ids --task DEV-001 --role developer", "--resource"),
        ("lock acquire --session-id ids --resource a --role developer", "No task is named"),
        ("lock acquire --session-id ids --resource a --task DEV-001", "No role is named"),
        ("lock acquire --session-id ids --resource= --task DEV-001 --role developer", "resource is empty"),
        ("checkpoint restore --session-id ids", "No task is named"),
        ("lock aquire --session-id ids", 'did you mean "acquire"?'),
        ("lock list --session-id no-such", '"no-such"'),
        ("checkpoint save --session-id ids --task DEV-001 --data {half", '"{half"'),
        ("checkpoint save --session-id no-such --task DEV-001", '"no-such"'),
        ("feedback add --session-id ids", "empty"),
        ("feedback add --session-id ids --severity ugly text", "ugly"),
        ("feedback add --session-id no-such text", '"no-such"'),
        ("feedback link FB-none DEV-001", '"FB-none"'),
        ("debt add --session-id no-such text", '"no-such"'),
        ("debt resolve TD-none --session-id ids", '"TD-none"'),
    ],
)
def test_what_is_wrong_is_said_with_its_value_and_exit_code_2(
    repo: Repo, session: str, words: str, problem: str
) -> None:
    done = repo.iterdev(*words.split())

    assert done.returncode == 2
    assert problem in done.stderr
    assert "hint: " in done.stderr
    assert done.stdout == ""


@pytest.mark.requirement("R126", "R128")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_agents_that_wait_for_each_other_s_locks_are_parted_and_one_of_them_finishes(repo: Repo, engine: str) -> None:
    """Each takes one lock, waits until the other has the other one, and then asks for it until it gets it."""

    def script(mine: str, theirs: str) -> dict[str, str]:
        wait = f"touch {repo.home}/{mine}; while ! test -e {repo.home}/{theirs}; do sleep 0.1; done"
        return {"run": f"{LOCK} {mine} && {wait} && until {LOCK} {theirs}; do sleep 0.2; done"}

    repo.behave(**{"DEV-001": script("a", "b"), "DEV-002": script("b", "a")})
    repo.write("plan.csv", TABLE)

    done = repo.iterdev("run", "-y", "--engine", engine, "--tasks", "plan.csv")

    left = left_behind(repo)
    folder = repo.folder(engine)
    (lost,) = [task for task, status in statuses(folder).items() if status == "failed"]
    assert done.returncode == 1
    assert sorted(statuses(folder).values()) == ["completed", "failed"]
    assert "waited for each other's locks" in rows(folder)[lost]["error"]
    assert any(f"{lost} was aborted" in text for text in messages(folder, "error"))
    assert document(folder / ".msg" / "meta.json")["resource_locks"] == {}
    assert left == []


@pytest.mark.requirement("R126")
def test_the_locks_of_an_agent_are_free_when_its_engine_was_killed(repo: Repo) -> None:
    repo.behave(developer={"run": f"{LOCK} database && touch {repo.home}/locked", "sleep": 600})
    with Background(repo, "run", "-y", "Fix it") as running:
        eventually((repo.home / "locked").exists, "the agent to lock something")
        session = repo.folder().name
        during = lock(repo, session, "acquire", "database", "VERIFY-001", "tester")
        running.kill()

    listed = repo.iterdev("lock", "list", "--session-id", session).stdout
    after = lock(repo, session, "acquire", "database", "VERIFY-001", "tester")

    assert (during.returncode, after.returncode) == (1, 0)
    assert "DEV-001" in during.stderr
    assert "database" not in listed


@pytest.mark.requirement("R135", "R136")
def test_checkpoints_are_saved_listed_and_restored_by_command(repo: Repo, session: str) -> None:
    names = ("--session-id", session, "--task", "DEV-001")
    nothing = repo.iterdev("checkpoint", "restore", *names)
    for step in range(6):
        repo.iterdev("checkpoint", "save", *names, "--data", json.dumps({"step": step}))

    data = told(repo.iterdev("checkpoint", "restore", *names))
    whole = told(repo.iterdev("checkpoint", "restore", *names, "--json"))
    listed = repo.iterdev("checkpoint", "list", "--session-id", session).stdout.splitlines()

    assert nothing.returncode == 1
    assert "there is no checkpoint of DEV-001" in nothing.stderr
    assert data == {"step": 5}
    assert whole["data"] == {"step": 5}
    assert whole["state_data_pointer"] == meta(repo)["task_checkpoints"]["DEV-001"][0]["state_data_pointer"]
    assert len(listed) == 5
    assert len(list((repo.folder() / "checkpoints").iterdir())) == 5
    assert len(messages(repo.folder(), "context_checkpoint_saved")) == 6
    assert len(messages(repo.folder(), "context_restored")) == 2


def test_an_agent_goes_on_from_the_checkpoint_of_the_attempt_before(repo: Repo) -> None:
    of_mine = '--session-id "$ITERDEV_SESSION" --task "$ITERDEV_TASK"'
    saves = f"iterdev checkpoint save {of_mine} --data '{{\"step\": 2}}'"
    restores = f"iterdev checkpoint restore {of_mine} > {repo.home}/restored"
    repo.behave(**{"DEV-001#1": {"run": saves, "exit": 3}, "DEV-001#2": {"run": restores, "write": {"a.txt": "x"}}})

    repo.iterdev("run", "-y", "Fix it")
    again = repo.iterdev("retry", repo.folder().name)

    assert again.returncode == 0, again.stderr
    first, second = (str(call["prompt"]) for call in repo.calls() if call["task"] == "DEV-001")
    assert "restore it, and go on from there" not in first
    assert "restore it, and go on from there" in second
    assert json.loads((repo.home / "restored").read_text()) == {"step": 2}


@pytest.mark.requirement("R136")
@pytest.mark.parametrize("damaged", [False, True], ids=["readable", "damaged"])
def test_after_a_kill_a_task_is_given_what_it_laid_down_or_begins_afresh(repo: Repo, *, damaged: bool) -> None:
    saves = 'iterdev checkpoint save --session-id "$ITERDEV_SESSION" --task "$ITERDEV_TASK" --data \'{"step": 2}\''
    repo.behave(developer={"run": f"{saves} && touch {repo.home}/saved", "sleep": 600})
    with Background(repo, "run", "-y", "Fix it") as running:
        eventually((repo.home / "saved").exists, "a checkpoint")
        running.kill()
    (kept,) = (repo.folder() / "checkpoints").iterdir()
    if damaged:
        kept.write_text("{")
    repo.behave()

    done = repo.iterdev("resume", "-y")

    _, prompt = (str(call["prompt"]) for call in repo.calls() if call["task"] == "DEV-001")
    assert done.returncode == 0, done.stderr
    assert ('```\n{"step": 2}\n```' in prompt) is not damaged
    assert (f"checkpoint restore --session-id {repo.folder().name} --task DEV-001" in prompt) is not damaged
    assert len(messages(repo.folder(), "context_restored")) == (0 if damaged else 1)
    assert ("DEV-001 starts over" in done.stdout) is damaged
    assert repo.iterdev("replay", repo.folder().name).returncode == 0


@pytest.mark.requirement("R137", "R138")
def test_feedback_is_added_listed_linked_and_closed(repo: Repo, session: str) -> None:
    add = ("feedback", "add", "--session-id", session)
    first = told(repo.iterdev(*add, "--severity", "high", "--category", "ux", "--json", "The button", "is red"))
    repo.iterdev(*add, "Nice colours")
    link = repo.iterdev("feedback", "link", str(first["feedback_id"]), "DEV-001")
    listed = told(repo.iterdev("feedback", "list", "--json"))["user_feedback_items"]
    lines = repo.iterdev("feedback", "list", "--session-id", session).stdout.splitlines()
    status = repo.iterdev("status").stdout
    closed = repo.iterdev("feedback", "close", str(first["feedback_id"]))

    assert (first["severity"], first["category"], first["status"]) == ("high", "ux", "new")
    assert first["description"] == "The button is red"
    assert (link.returncode, closed.returncode) == (0, 0)
    assert [item["description"] for item in listed] == ["Nice colours", "The button is red"]
    assert (listed[1]["source_task_id"], listed[1]["status"]) == ("DEV-001", "reviewed")
    assert (listed[0]["severity"], listed[0]["category"], listed[0]["status"]) == ("medium", "general", "new")
    assert lines[0].startswith(listed[0]["feedback_id"])
    assert "Feedback: 2 open, 1 of high or critical severity" in status
    assert "Feedback: 1 open" in repo.iterdev("status").stdout
    assert len(messages(repo.folder(), "user_feedback_received")) == 2


@pytest.mark.requirement("R139")
def test_feedback_that_is_given_while_agents_work_reaches_the_tasks_after_them(repo: Repo) -> None:
    repo.behave(developer={"run": f"while ! test -e {repo.home}/go; do sleep 0.1; done"})
    with Background(repo, "run", "-y", "--pipeline", "sprint", "Add a greeting") as running:
        running.until_agent_works_on("DEV-001")
        session = repo.folder().name
        repo.iterdev("feedback", "add", "--session-id", session, "--severity", "critical", "It must rhyme")
        eventually(lambda: meta(repo)["user_feedback_items"], "the engine to write it down")
        (repo.home / "go").touch()
        ending = running.end()

    prompts = {str(call["task"]): str(call["prompt"]) for call in repo.calls()}
    assert ending.returncode == 0, ending.stderr
    assert "It must rhyme" not in prompts["DEV-001"]
    assert "It must rhyme" in prompts["REVIEW-001"]
    assert "It must rhyme" in repo.iterdev("report").stdout


@pytest.mark.requirement("R140", "R141", "R143")
def test_debt_of_agents_and_users_is_kept_counted_and_resolved(repo: Repo) -> None:
    owed = ["No test for it", {"description": "Copied twice", "severity": "high", "related_files": ["a.py"]}]
    repo.behave(developer={"result": {"tech_debt": owed}})
    done = repo.iterdev("run", "-y", "Fix it")
    session = ("--session-id", repo.folder().name)
    words = ("--severity", "critical", "--category", "design", "--effort", "large", "--file", "b.py", "--owner", "me")
    mine = told(repo.iterdev("debt", "add", *session, *words, "--json", "No", "design at all"))
    before = told(repo.iterdev("debt", "report", *session, "--json"))
    status, text = repo.iterdev("status").stdout, repo.iterdev("debt", "report", *session).stdout
    resolved = repo.iterdev("debt", "resolve", str(mine["debt_id"]), *session)
    after = told(repo.iterdev("debt", "list", *session, "--json"))["tech_debt_items"]

    assert done.returncode == 0, done.stderr
    assert (before["total"], before["in_progress_items"]) == (3, [])
    assert before["by_severity"] == {"critical": 1, "high": 1, "medium": 1, "low": 0}
    assert before["by_category"] == {"code": 2, "design": 1, "test": 0, "documentation": 0}
    assert {item["source_task_id"] for item in before["open_items"]} == {"DEV-001", None}
    assert (mine["estimated_effort"], mine["owner"], mine["related_files"]) == ("large", "me", ["b.py"])
    assert "Technical debt: 3 open (1 critical, 1 high, 1 medium)" in status
    assert [text.index(word) for word in ("No design", "Copied", "No test")] == sorted(
        text.index(word) for word in ("No design", "Copied", "No test")
    )
    assert resolved.returncode == 0
    assert [item["status"] for item in after] == ["resolved", "open", "open"]
    assert meta(repo)["tech_debt_items"] == after
    assert len(messages(repo.folder(), "tech_debt_identified")) == 3


def test_no_secret_that_somebody_types_reaches_the_journal_or_a_file(repo: Repo, session: str) -> None:
    secret = "hunter-two-and-three"
    names = ("--session-id", session)
    for words in (
        ("feedback", "add", *names, f"the password is {secret}"),
        ("debt", "add", *names, "--plan", secret, f"{secret} is in the code"),
        ("checkpoint", "save", *names, "--task", "DEV-001", "--data", json.dumps({"key": [secret]})),
        ("lock", "acquire", *names, "--resource", secret, "--task", "DEV-001", "--role", "developer"),
    ):
        assert repo.iterdev(*words, DB_PASSWORD=secret).returncode == 0

    files = [path for path in (repo.path / ".workflow").rglob("*") if path.is_file()]
    assert [path for path in files if secret.encode() in path.read_bytes()] == []


def test_a_running_session_can_be_given_feedback_and_debt_without_being_disturbed(repo: Repo) -> None:
    with agent_at_work(repo, "run", "-y", "Fix it") as running:
        session = ("--session-id", repo.folder().name)
        repo.iterdev("debt", "add", *session, "Copied twice")
        repo.iterdev("checkpoint", "save", *session, "--task", "DEV-001")
        eventually(lambda: meta(repo)["tech_debt_items"], "the engine to write it down")
        running.kill()
    repo.behave()

    done = repo.iterdev("resume", "-y")

    assert done.returncode == 0, done.stderr
    assert [item["description"] for item in meta(repo)["tech_debt_items"]] == ["Copied twice"]
