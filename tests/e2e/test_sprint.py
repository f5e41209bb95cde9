"""A sprint from the command to the accepted branch, with agents that are programs of the user's own."""

import re
import subprocess
from functools import partial
from pathlib import Path

import pytest
from msgspec import Struct
from tests.conftest import Repo, make_repo
from tests.e2e.conftest import once, repository_bytes
from tests.places import Place
from tests.session_files import document, left_behind, messages, rows

pytestmark = pytest.mark.elsewhere

COLUMNS = (
    "id,title,description,role,pipeline,sprint_num,gc_round,deps,context_from,exec_mode,wave,status,findings,"
    "review_score,gc_signal,error"
)
TASKS = ["DESIGN-001", "DEV-001", "VERIFY-001", "REVIEW-001"]

# Each waits for the other one, so both come to an end only if they run side by side.
TESTS = "touch {home}/testing; until test -e {home}/reviewing; do sleep 0.05; done"
REVIEW = "touch {home}/reviewing; until test -e {home}/testing; do sleep 0.05; done"


class Sprint(Struct):
    """A finished run, in the checkout of a user who was in the middle of something."""

    repo: Repo
    engine: str
    run: subprocess.CompletedProcess[str]
    before: dict[str, bytes]
    after: dict[str, bytes]
    left: list[str]

    @property
    def folder(self) -> Path:
        return self.repo.folder(self.engine)

    @property
    def branch(self) -> str:
        return f"iterdev/{self.folder.name}"

    @property
    def seen_by_developer(self) -> Path:
        """The session folder as it was while DEV-001 was at work."""
        return self.repo.home / "seen"


def run_sprint(root: Path, engine: str, place: Place) -> Sprint:
    repo = make_repo(root, place)
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write(
        "iterdev.toml", text.replace('test = "true"', f"test = '{TESTS.format(home=repo.home)}'\n[limits]\ntest = 30")
    )
    repo.write("staged.txt", "first\n")
    repo.commit("settings")
    repo.write("staged.txt", "second\n")
    repo.git("add", "staged.txt")
    repo.write("README.md", "# Half a sentence\n")
    repo.write("notes.txt", "mine\n")
    repo.behave(
        developer={
            "write": {"greeting.py": "GREETING = 'hello'\n"},
            "run": f"cp -r $ITERDEV_SESSION_DIR {repo.home}/seen",
        },
        reviewer={"run": REVIEW.format(home=repo.home)},
    )
    before = repository_bytes(repo)
    run = repo.iterdev("run", "-y", "--engine", engine, "--pipeline", "sprint", "Add a greeting")
    return Sprint(repo, engine, run, before, repository_bytes(repo), left_behind(repo))


@pytest.fixture(scope="module")
def wave(tmp_path_factory: pytest.TempPathFactory, place_of_attempts: Place) -> Sprint:
    run = partial(run_sprint, engine="wave", place=place_of_attempts)
    return once(tmp_path_factory, f"wave-{place_of_attempts}", run)


@pytest.fixture(scope="module")
def beat(tmp_path_factory: pytest.TempPathFactory, place_of_attempts: Place) -> Sprint:
    run = partial(run_sprint, engine="beat", place=place_of_attempts)
    return once(tmp_path_factory, f"beat-{place_of_attempts}", run)


@pytest.fixture(params=["wave", "beat"])
def sprint(request: pytest.FixtureRequest, place_of_attempts: Place) -> Sprint:
    found: Sprint = request.getfixturevalue(request.param)
    return found


@pytest.mark.requirement("R1", "R3", "R5", "R64", "R108")
def test_a_sprint_ends_with_all_tasks_done_and_says_what_to_do_next(sprint: Sprint) -> None:
    session = sprint.folder.name

    assert sprint.run.returncode == 0, sprint.run.stderr
    changed = "README.md, staged.txt, notes.txt"
    assert sprint.run.stderr == f"warning: agents do not see 3 uncommitted changes: {changed}\n"
    assert f"{session}: 4 completed, 0 failed, 0 skipped" in sprint.run.stdout
    assert f"iterdev accept {session}" in sprint.run.stdout
    assert document(sprint.folder / "session.json")["requirement"] == "Add a greeting"


@pytest.mark.requirement("R31", "R38", "R45")
def test_a_sprint_is_four_tasks_in_three_waves(sprint: Sprint) -> None:
    table = rows(sprint.folder)

    assert list(table) == TASKS
    assert [row["wave"] for row in table.values()] == ["1", "2", "3", "3"]
    assert [row["deps"] for row in table.values()] == ["", "DESIGN-001", "DEV-001", "DEV-001"]
    assert [row["role"] for row in table.values()] == ["architect", "developer", "tester", "reviewer"]


@pytest.mark.requirement("R42")
def test_verification_and_review_run_side_by_side(sprint: Sprint) -> None:
    table = rows(sprint.folder)

    assert table["VERIFY-001"]["status"] == table["REVIEW-001"]["status"] == "completed"
    assert "100.0%" in table["VERIFY-001"]["findings"]


@pytest.mark.requirement("R39")
def test_only_the_developer_has_an_inner_loop(sprint: Sprint) -> None:
    loops = {name: row["description"].splitlines()[-1] for name, row in rows(sprint.folder).items()}

    assert loops == dict.fromkeys(TASKS, "InnerLoop: false") | {"DEV-001": "InnerLoop: true"}


@pytest.mark.requirement("R100")
def test_the_table_has_exactly_the_sixteen_columns(sprint: Sprint) -> None:
    assert (sprint.folder / "tasks.csv").read_text(encoding="utf-8").splitlines()[0] == COLUMNS


@pytest.mark.requirement("R79")
def test_only_the_review_has_a_score_and_a_signal(sprint: Sprint) -> None:
    verdicts = {name: (row["review_score"], row["gc_signal"]) for name, row in rows(sprint.folder).items()}

    assert verdicts == dict.fromkeys(TASKS, ("", "")) | {"REVIEW-001": ("9", "CONVERGED")}


@pytest.mark.requirement("R62", "R88", "R99")
def test_every_file_of_the_session_is_there(sprint: Sprint) -> None:
    expected = {
        "tasks.csv",
        "results.csv",
        "context.md",
        "timeline.svg",
        "discoveries.ndjson",
        "session.json",
        "task-ledger.json",
        "task-analysis.json",
        ".msg/messages.jsonl",
        ".msg/meta.json",
        "interactive/task-analyzer-result.json",
        "design/design-001.json",
        "design/design-001.md",
        "design/task-breakdown.json",
        "code/dev-log.md",
        "verify/verify-001.json",
        "review/review-001.md",
        "logs/engine.jsonl",
        *(f"wisdom/{name}.md" for name in ("learnings", "decisions", "conventions", "issues")),
    }

    found = {str(path.relative_to(sprint.folder)) for path in sprint.folder.rglob("*") if path.is_file()}

    assert found == expected


@pytest.mark.requirement("R65")
def test_the_results_are_the_final_table(sprint: Sprint) -> None:
    assert (sprint.folder / "results.csv").read_bytes() == (sprint.folder / "tasks.csv").read_bytes()


@pytest.mark.requirement("R102")
def test_the_report_has_header_summary_waves_details_and_deliverables(sprint: Sprint) -> None:
    report = (sprint.folder / "context.md").read_text(encoding="utf-8")

    assert sprint.repo.iterdev("report", TZ="Asia/Singapore").stdout == report
    assert f"**Session**: {sprint.folder.name}" in report
    assert "**Requirement**: Add a greeting" in report
    assert "| Completed | 4 |" in report
    assert "| GC Rounds | 0 |" in report
    assert re.findall("^### Wave .*$", report, re.MULTILINE) == [
        "### Wave 1/3: 1 completed",
        "### Wave 2/3: 1 completed",
        "### Wave 3/3: 2 completed",
    ]
    assert re.findall(r"^### (\w+-\d+): ", report, re.MULTILINE) == TASKS
    assert "review/review-001.md" in report


@pytest.mark.requirement("R97", "R98")
def test_each_engine_has_its_own_folder_and_form_of_id(wave: Sprint, beat: Sprint) -> None:
    assert re.fullmatch(r"ids-add-a-greeting-\d{8}", wave.folder.name)
    assert wave.folder.parent == wave.repo.path / ".workflow" / ".csv-wave"
    assert re.fullmatch(r"IDS-add-a-greeting-\d{4}-\d\d-\d\d", beat.folder.name)
    assert beat.folder.parent == beat.repo.path / ".workflow" / ".team"


@pytest.mark.requirement("R47", "R54")
def test_a_wave_starts_only_when_the_one_before_is_in_the_table(wave: Sprint) -> None:
    table = rows(wave.seen_by_developer)

    assert table["DESIGN-001"]["status"] == "completed"
    assert table["DESIGN-001"]["findings"] == "architect finished DESIGN-001"
    assert {table[name]["status"] for name in TASKS[1:]} == {"pending"}


@pytest.mark.requirement("R48", "R51")
def test_the_wave_file_holds_only_its_tasks_with_the_context_of_those_before(wave: Sprint) -> None:
    batch = rows(wave.seen_by_developer, "wave-2.csv")

    assert list(batch) == ["DEV-001"]
    title = rows(wave.folder)["DESIGN-001"]["title"]
    assert batch["DEV-001"]["prev_context"] == f"[Task DESIGN-001: {title}] architect finished DESIGN-001"
    assert not (wave.seen_by_developer / "wave-1.csv").exists()


@pytest.mark.requirement("R51", "R52")
def test_agents_are_told_what_was_found_before_or_that_there_is_nothing(sprint: Sprint) -> None:
    prompts = {call["task"]: str(call["prompt"]) for call in sprint.repo.calls()}

    assert "architect finished DESIGN-001" in prompts["DEV-001"]
    assert "developer finished DEV-001" in prompts["REVIEW-001"]
    assert "finished" not in prompts["DESIGN-001"]
    assert "## Previous context\nNo previous context" in prompts["DESIGN-001"]


@pytest.mark.requirement("R55")
def test_no_wave_file_is_left(wave: Sprint) -> None:
    assert list(wave.folder.glob("wave-*")) == []


@pytest.mark.requirement("R76")
def test_the_bus_tells_the_story_in_order(sprint: Sprint) -> None:
    assert messages(sprint.folder, "sprint_started") == ["[coordinator] sprint-1 started: Add a greeting"]
    assert [text[: text.index(" ")] for text in messages(sprint.folder, "design_ready")] == ["[architect]"]
    assert len(messages(sprint.folder, "dev_complete")) == 1
    assert len(messages(sprint.folder, "verify_passed")) == 1
    assert len(messages(sprint.folder, "review_passed")) == 1
    assert len(messages(sprint.folder, "task_unblocked")) == 1


def test_the_users_branch_index_and_files_are_not_touched_by_a_run(sprint: Sprint) -> None:
    assert sprint.after == sprint.before


def test_the_state_is_hidden_from_git(sprint: Sprint) -> None:
    assert ".workflow" not in sprint.repo.git("status", "--porcelain")
    assert ".gitignore" not in sprint.repo.git("ls-files", "--others")


def test_a_run_leaves_no_process_worktree_or_temporary_file(sprint: Sprint) -> None:
    assert sprint.left == []


def test_the_work_is_on_the_sessions_branch_with_its_author_and_trailers(sprint: Sprint) -> None:
    author, trailers = sprint.repo.git("log", "-1", "--format=%an%x00%(trailers:only)", sprint.branch).split("\0")

    assert author == "developer (mine)"
    assert trailers.split("\n") == [
        f"Iterdev-Session: {sprint.folder.name}",
        "Iterdev-Task: DEV-001",
        "Iterdev-Attempt: 1",
    ]
    assert sprint.repo.git("diff", "--name-only", "main", sprint.branch) == "greeting.py"
    assert sprint.repo.git("rev-list", "--count", f"main..{sprint.branch}") == "1"


def test_accept_waits_for_a_clean_tree_and_then_brings_the_branch_in(repo: Repo) -> None:
    repo.behave(developer={"write": {"greeting.py": "GREETING = 'hello'\n"}})
    repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")
    repo.write("README.md", "# Half a sentence\n")
    before = repository_bytes(repo)

    refused = repo.iterdev("accept")
    unchanged = repository_bytes(repo) == before
    repo.git("checkout", "README.md")
    accepted = repo.iterdev("accept")

    assert refused.returncode == 2
    assert '"README.md"' in refused.stderr
    assert "hint: " in refused.stderr
    assert unchanged
    assert accepted.returncode == 0, accepted.stderr
    assert repo.git("rev-parse", "main") == repo.git("rev-parse", f"iterdev/{repo.folder().name}")
    assert (repo.path / "greeting.py").read_text(encoding="utf-8") == "GREETING = 'hello'\n"
    assert repo.git("status", "--porcelain") == ""


def test_accept_merges_when_the_users_branch_has_moved_on(repo: Repo) -> None:
    repo.behave(developer={"write": {"greeting.py": "GREETING = 'hello'\n"}})
    repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")
    repo.write("other.txt", "meanwhile\n")
    repo.commit("meanwhile")

    accepted = repo.iterdev("accept")

    assert accepted.returncode == 0, accepted.stderr
    assert len(repo.git("log", "-1", "--format=%P").split()) == 2
    assert sorted(repo.git("ls-files").split()) == ["README.md", "greeting.py", "iterdev.toml", "other.txt"]


def test_accept_that_would_conflict_changes_nothing_and_names_the_file(repo: Repo) -> None:
    repo.behave(developer={"write": {"README.md": "# Theirs\n"}})
    repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")
    repo.write("README.md", "# Ours\n")
    tip = repo.commit("meanwhile")

    refused = repo.iterdev("accept")

    assert refused.returncode == 2
    assert "README.md" in refused.stderr
    assert repo.git("rev-parse", "HEAD") == tip
    assert repo.git("status", "--porcelain") == ""
    assert not (repo.path / ".git" / "MERGE_HEAD").exists()
