"""Agents that hang, crash, lie, flood, wander and write where they should not: each in one row of a table.

One run has them all, since that is what a bad day looks like: none of them may spoil it for the others.
"""

import subprocess
from pathlib import Path

import pytest
from msgspec import Struct
from tests.conftest import Repo, make_repo
from tests.e2e.conftest import once, script
from tests.session_files import left_behind, messages, processes, rows, statuses

SCRIPT = """
[[rule]]
task = "DEV-good"
write = { "good.txt" = "good" }
result = {}

[[rule]]
task = "DEV-floods"
flood = 20_000_000
write = { "floods.txt" = "x" }
result = {}

[[rule]]
task = "DEV-detaches"
detach = "sleep 1000"
run = "sleep 1000 &"
write = { "detaches.txt" = "x" }
result = {}

[[rule]]
task = "DEV-idles"
result = {}

[[rule]]
task = "DEV-silent"
say = ["thinking"]
run = "cat > $HOME/prompt-silent-{attempt}"

[[rule]]
task = "DEV-malformed"
write = { "malformed.txt" = "x" }
run = "cat > $HOME/prompt-malformed-{attempt}; echo $ITERDEV_ATTEMPT >> $HOME/attempts"
result_text = "I am done!"

[[rule]]
task = "DEV-empty"
write = { "empty.txt" = "x" }
result_text = ""

[[rule]]
task = "DEV-mistaken"
write = { "mistaken.txt" = "x" }
run = "cat > $HOME/prompt-mistaken-{attempt}"
result = { id = "DEV-other" }

[[rule]]
task = "DEV-partial"
write = { "partial.txt" = "x" }
run = "cat > $HOME/prompt-partial-{attempt}"
result_text = '{"id": "DEV-partial", "findings": "all done"}'

[[rule]]
task = "DEV-learns"
attempt = 1
write = { "learns.txt" = "x" }
result_text = "{"

[[rule]]
task = "DEV-learns"
result = {}

[[rule]]
task = "DEV-prints"
write = { "prints.txt" = "x" }
say = ["Here it is:", "{not json}"]
result = { findings = "printed" }
print_result = true

[[rule]]
task = "DEV-crashes"
write = { "half.txt" = "half" }
run = "echo the model is overloaded >&2"
exit = 7

[[rule]]
task = "DEV-admits"
result = { status = "failed", error = "the library does not exist" }

[[rule]]
task = "DEV-commits"
write = { "commits.txt" = "x" }
commit = "Words of my own"
result = {}

[[rule]]
task = "DEV-deletes"
delete = ["README.md"]
result = {}

[[rule]]
task = "DEV-switches"
run = "git switch --quiet --create elsewhere"
write = { "switches.txt" = "x" }
commit = "elsewhere"
result = {}

[[rule]]
task = "DEV-strays"
write = { "../stray.txt" = "x", "strays.txt" = "x" }
result = {}

[[rule]]
task = "DEV-intrudes"
write = { "{project}/intruder.txt" = "x", "intrudes.txt" = "x" }
result = {}

[[rule]]
task = "DEV-limited"
attempt = 1
fail = { kind = "rate limited", reset_in = 2 }

[[rule]]
task = "DEV-limited"
write = { "limited.txt" = "x" }
result = {}

[[rule]]
task = "DEV-asks"
permission = "rm -rf build"

[[rule]]
task = "DEV-stammers"
write = { "stammers.py" = "def greet(:\\n" }
run = "cat > $HOME/prompt-stammers-{attempt}"
result = {}

[[rule]]
task = "DEV-mends"
attempt = 1
write = { "mends.py" = "def greet(:\\n" }
result = {}

[[rule]]
task = "DEV-mends"
write = { "mends.py" = "def greet():\\n    return 1\\n" }
result = {}

[[rule]]
role = "architect"
write = { "plan.txt" = "x" }
result = { design = "d", components = [{ name = "a", dependencies = [] }], tasks = [{ id = "t", title = "t" }] }

[[rule]]
role = "reviewer"
write = { "README.md" = "better" }
result = { scores = { correctness = 9, completeness = 9, maintainability = 9, security = 9 } }
"""
STAMMERS = "def greet():\n    return 0\n"
"""What a file was before a developer broke it."""
DEVELOPERS = (
    "good floods detaches idles silent malformed empty mistaken partial learns prints crashes admits commits deletes "
    "switches strays intrudes limited asks stammers mends"
)
TABLE = "id,description,role,deps\n" + "".join(f"DEV-{name},do it,developer,\n" for name in DEVELOPERS.split())
TABLE += "DESIGN-writes,design,architect,\nREVIEW-writes,review,reviewer,\n"
TABLE += "DEV-after,goes on,developer,DEV-good;DEV-crashes\nDEV-last,goes on,developer,DEV-after\n"


class Day(Struct):
    repo: Repo
    run: subprocess.CompletedProcess[str]
    left: list[str]

    @property
    def folder(self) -> Path:
        return self.repo.folder()

    @property
    def branch(self) -> str:
        return f"iterdev/{self.folder.name}"

    def status(self, task: str) -> str:
        return statuses(self.folder)[task]

    def error(self, task: str) -> str:
        return rows(self.folder)[task]["error"]

    def prompt(self, name: str, attempt: int) -> str:
        return (self.repo.home / f"prompt-{name}-{attempt}").read_text(encoding="utf-8")

    def was_asked(self, name: str) -> int:
        return len(list(self.repo.home.glob(f"prompt-{name}-*")))

    def warnings(self) -> list[str]:
        return [line for line in self.run.stdout.splitlines() if line.startswith("  warning: ")]

    def landed(self) -> set[str]:
        return set(self.repo.git("ls-tree", "--name-only", self.branch).split())


def bad_day(root: Path) -> Day:
    repo = make_repo(root)
    repo.write("stammers.py", STAMMERS)
    script(repo, SCRIPT.replace("{project}", str(repo.path)))
    (repo.home / "table.csv").write_text(TABLE, encoding="utf-8")
    run = repo.iterdev("run", "-y", "-c", "4", "--tasks", str(repo.home / "table.csv"))
    return Day(repo, run, left_behind(repo))


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Day:
    """The end of the run that had every kind of bad agent in it."""
    return once(tmp_path_factory, "bad-day", bad_day)


@pytest.mark.requirement("R57", "R64", "R108")
def test_bad_agents_do_not_keep_the_good_ones_from_their_work(day: Day) -> None:
    good = {"good", "floods", "detaches", "learns", "prints", "commits", "switches", "strays", "intrudes", "limited"}

    done = {name for name, status in statuses(day.folder).items() if status == "completed"}

    assert day.run.returncode == 1
    assert {f"DEV-{name}" for name in good} <= done
    assert {f"{name}.txt" for name in good} <= day.landed()
    assert f"{len(done)} completed, {len(TABLE.splitlines()) - 1 - len(done) - 2} failed, 2 skipped" in day.run.stdout


def test_no_process_worktree_or_temporary_file_is_left(day: Day) -> None:
    assert day.left == []


@pytest.mark.requirement("R49", "R50")
def test_whoever_depends_on_a_failed_task_is_skipped_with_the_reason(day: Day) -> None:
    assert (day.status("DEV-after"), day.status("DEV-last")) == ("skipped", "skipped")
    assert "DEV-crashes" in day.error("DEV-after")
    assert "DEV-good" not in day.error("DEV-after")
    assert "DEV-after" in day.error("DEV-last")


def test_a_flood_of_output_is_cut(day: Day) -> None:
    log = day.folder / "logs" / "DEV-floods-1.log"

    assert day.status("DEV-floods") == "completed"
    assert log.stat().st_size < 300_000
    assert sum(path.stat().st_size for path in (day.repo.path / ".workflow").rglob("*")) < 5_000_000


def test_detached_children_end_with_their_agent(day: Day) -> None:
    assert day.status("DEV-detaches") == "completed"
    assert [line for line in day.left if "sleep 1000" in line] == []


def test_a_developer_that_changes_nothing_and_does_not_say_why_has_failed(day: Day) -> None:
    assert day.status("DEV-idles") == "failed"
    assert "changed nothing" in day.error("DEV-idles")


def test_no_result_is_asked_for_twice_more_and_then_failed(day: Day) -> None:
    assert day.status("DEV-silent") == "failed"
    assert "without a result" in day.error("DEV-silent")
    assert day.was_asked("silent") == 3
    assert "without a result" in day.prompt("silent", 2)


def test_a_malformed_result_is_asked_for_twice_more_with_the_error_quoted(day: Day) -> None:
    assert day.status("DEV-malformed") == "failed"
    assert "malformed" in day.error("DEV-malformed")
    assert (day.repo.home / "attempts").read_text(encoding="utf-8").split() == ["1", "2", "3"]
    assert all("JSON is malformed" in day.prompt("malformed", attempt) for attempt in (2, 3))


def test_an_empty_result_is_a_failure(day: Day) -> None:
    assert day.status("DEV-empty") == "failed"
    assert "result" in day.error("DEV-empty")


def test_a_result_for_another_task_is_refused_naming_both(day: Day) -> None:
    assert day.status("DEV-mistaken") == "failed"
    assert '"DEV-other"' in day.error("DEV-mistaken")
    assert '"DEV-mistaken"' in day.error("DEV-mistaken")
    assert '"DEV-other"' in day.prompt("mistaken", 3)


def test_a_missing_field_is_named(day: Day) -> None:
    assert day.status("DEV-partial") == "failed"
    assert "`status`" in day.error("DEV-partial")
    assert "`status`" in day.prompt("partial", 2)


def test_a_result_that_fits_at_the_second_request_counts(day: Day) -> None:
    assert day.status("DEV-learns") == "completed"
    assert "learns.txt" in day.landed()


def test_without_a_file_the_last_json_object_on_standard_output_counts(day: Day) -> None:
    assert rows(day.folder)["DEV-prints"]["findings"] == "printed"


def test_an_exit_code_other_than_0_is_a_failure_and_what_was_written_is_kept(day: Day) -> None:
    kept = f"refs/iterdev/{day.folder.name}/DEV-crashes/1"

    assert day.status("DEV-crashes") == "failed"
    assert "code 7" in day.error("DEV-crashes")
    assert "the model is overloaded" in day.error("DEV-crashes")
    assert "half.txt" not in day.landed()
    assert day.repo.git("show", f"{kept}:half.txt") == "half"


def test_an_agent_that_says_it_failed_has_failed_in_its_own_words(day: Day) -> None:
    assert day.status("DEV-admits") == "failed"
    assert day.error("DEV-admits") == "the library does not exist"
    assert any("the library does not exist" in text for text in messages(day.folder, "error"))


def test_an_agents_own_commit_is_taken_as_it_is(day: Day) -> None:
    assert day.status("DEV-commits") == "completed"
    assert "Words of my own" in day.repo.git("log", "--format=%s", day.branch)


def test_a_deletion_lands_like_any_other_change(day: Day) -> None:
    assert day.status("DEV-deletes") == "completed"
    assert "README.md" not in day.landed()
    assert (day.repo.path / "README.md").exists()


def test_work_on_another_branch_is_taken_from_the_worktree(day: Day) -> None:
    assert day.status("DEV-switches") == "completed"
    assert "switches.txt" in day.landed()
    assert day.repo.git("rev-parse", "--abbrev-ref", "HEAD") == "main"


def test_a_write_beside_the_workspace_is_reported_and_removed(day: Day) -> None:
    assert any("DEV-strays" in line and "stray.txt" in line for line in day.warnings())
    assert "strays.txt" in day.landed()


def test_a_write_into_the_users_checkout_is_reported(day: Day) -> None:
    assert any("intruder.txt" in line for line in day.warnings())
    assert any("intruder.txt" in line for line in day.repo.iterdev("report").stdout.splitlines())


def test_a_limit_of_the_provider_is_waited_for_and_is_no_failure(day: Day) -> None:
    told = [line for line in day.run.stdout.splitlines() if line.startswith("  DEV-limited ")]

    assert day.status("DEV-limited") == "completed"
    assert "limited.txt" in day.landed()
    assert [line for line in told if "started" in line] == [
        "  DEV-limited started (developer, mine, attempt 1)",
        "  DEV-limited started (developer, mine, attempt 2)",
    ]
    assert any("limit" in line.removeprefix("  DEV-limited") for line in told)


def test_a_permission_that_nobody_can_give_is_a_failure_that_names_it(day: Day) -> None:
    assert day.status("DEV-asks") == "failed"
    assert "permission" in day.error("DEV-asks")
    assert "rm -rf build" in day.error("DEV-asks")
    assert "asked for, and denied: rm -rf build" in day.repo.iterdev("why", day.folder.name, "DEV-asks").stdout
    assert "- Asked for, and denied: rm -rf build" in day.repo.iterdev("report").stdout


@pytest.mark.requirement("R170")
def test_syntax_that_a_change_broke_is_given_back_at_most_twice(day: Day) -> None:
    assert day.status("DEV-stammers") == "failed"
    assert "stammers.py:1" in day.error("DEV-stammers")
    assert day.was_asked("stammers") == 3
    assert all("stammers.py:1" in day.prompt("stammers", attempt) for attempt in (2, 3))
    assert day.repo.git("show", f"{day.branch}:stammers.py") == STAMMERS.strip()


@pytest.mark.requirement("R170")
def test_syntax_that_was_mended_lands(day: Day) -> None:
    assert day.status("DEV-mends") == "completed"
    assert day.repo.git("show", f"{day.branch}:mends.py") == "def greet():\n    return 1"


@pytest.mark.parametrize(("task", "file"), [("DESIGN-writes", "plan.txt"), ("REVIEW-writes", "README.md")])
def test_what_a_reader_writes_is_set_aside_and_reported(day: Day, task: str, file: str) -> None:
    ref = f"refs/iterdev/{day.folder.name}/{task}/1"

    assert day.status(task) == "completed"
    assert any(task in line and ref in line for line in day.warnings())
    assert file in day.repo.git("diff-tree", "-r", "--name-only", "main", ref)
    assert "plan.txt" not in day.landed()


HANGING = """
[[rule]]
task = "DEV-hangs"
write = { "half.txt" = "half" }
run = "sleep 1000 &"
hang = true

[[rule]]
task = "DEV-stubborn"
ignore_term = true
detach = "trap '' TERM; sleep 1000"
hang = true

[[rule]]
task = "DEV-slow"
sleep = 1000
"""


@pytest.mark.requirement("R49", "R57")
def test_hanging_agents_are_ended_at_the_time_limit_with_all_that_they_started(repo: Repo) -> None:
    script(repo, HANGING, "[limits]\nattempt = 3\n")
    table = repo.home / "table.csv"
    table.write_text(
        "id,description,role,deps\nDEV-hangs,h,developer,\nDEV-stubborn,s,developer,\nDEV-after,a,developer,DEV-hangs\n"
    )

    run = repo.iterdev("run", "-y", "--tasks", str(table))

    table_now = rows(repo.folder())
    assert run.returncode == 1
    assert statuses(repo.folder()) == {"DEV-hangs": "failed", "DEV-stubborn": "failed", "DEV-after": "skipped"}
    assert "longer than 3 s" in table_now["DEV-hangs"]["error"]
    assert "longer than 3 s" in table_now["DEV-stubborn"]["error"]
    assert repo.git("show", f"refs/iterdev/{repo.folder().name}/DEV-hangs/1:half.txt") == "half"
    assert left_behind(repo) == []


@pytest.mark.requirement("R56")
def test_a_wave_that_has_used_up_its_time_fails_what_runs_and_what_waits(repo: Repo) -> None:
    script(repo, HANGING, "[limits]\nwave = 2\n")
    table = repo.home / "table.csv"
    table.write_text("id,description,role\nDEV-hangs,h,developer\nDEV-slow,s,developer\n")

    run = repo.iterdev("run", "-y", "-c", "1", "--tasks", str(table))

    assert run.returncode == 1
    assert statuses(repo.folder()) == {"DEV-hangs": "failed", "DEV-slow": "failed"}
    assert "longer than" in rows(repo.folder())["DEV-hangs"]["error"]
    assert "wave 1" in rows(repo.folder())["DEV-slow"]["error"]
    assert left_behind(repo) == []


LOST = """
[[rule]]
task = "DEV-001"
run = "{command}"
write = { "lost.txt" = "x" }
commit = "from elsewhere"
result = {}
"""


@pytest.mark.parametrize("command", ["git switch --quiet --orphan nowhere", "git checkout --quiet HEAD~1"])
def test_an_agent_that_leaves_the_history_it_was_given_cannot_undo_the_work_of_others(repo: Repo, command: str) -> None:
    script(repo, LOST.replace("{command}", command))

    run = repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")

    folder = repo.folder()
    assert run.returncode == 1
    assert statuses(folder)["DEV-001"] == "failed"
    assert "history" in rows(folder)["DEV-001"]["error"]
    assert repo.git("rev-parse", f"iterdev/{folder.name}") == repo.git("rev-parse", "main")
    kept = repo.git("for-each-ref", "--format=%(refname)", f"refs/iterdev/{folder.name}/DEV-001").split()
    assert any("lost.txt" in repo.git("ls-tree", "--name-only", ref) for ref in kept)


def test_an_agent_that_moves_the_users_branch_is_reported(repo: Repo) -> None:
    script(repo, LOST.replace("{command}", "git update-ref refs/heads/main HEAD~1"))

    run = repo.iterdev("run", "-y", "--pipeline", "patch", "Add a greeting")

    assert any(line.startswith("  warning: DEV-001") and "main" in line for line in run.stdout.splitlines())


def test_a_setup_command_that_fails_is_the_hosts_fault_and_can_be_mended(repo: Repo) -> None:
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", text.replace('test = "true"', 'test = "true"\nsetup = "echo no network >&2; exit 9"'))

    run = repo.iterdev("run", "-y", "Fix it")
    alive = processes(repo)
    repo.write("iterdev.toml", text)
    mended = repo.iterdev("resume")

    assert run.returncode == 4
    assert "echo no network >&2; exit 9" in run.stderr
    assert "with 9: no network" in run.stderr
    assert "hint: " in run.stderr
    assert alive == []
    assert mended.returncode == 0, mended.stderr
    assert [call["task"] for call in repo.calls()] == ["DEV-001"]
    assert left_behind(repo) == []


def test_an_agent_that_is_not_installed_is_named_before_anything_is_started(repo: Repo) -> None:
    text = (repo.path / "iterdev.toml").read_text(encoding="utf-8")
    repo.write("iterdev.toml", f'{text}\n[agents.ghost]\ncommand = ["no-such-program"]\n')
    repo.commit("ghost")

    run = repo.iterdev("run", "-y", "--role-agent", "tester=ghost", "Fix it")

    assert run.returncode == 4
    assert '"no-such-program"' in run.stderr
    assert "hint: " in run.stderr
    assert repo.calls() == []
    assert left_behind(repo) == []
