"""The command that installs the skills in people's own coding agents."""

from tests.conftest import Repo


def test_a_user_installs_the_skills_looks_and_removes_them(repo: Repo) -> None:
    command = ("skill", "install", "--client", "codex")
    shown = repo.iterdev(*command, "--dry-run").stdout.splitlines()

    installed = repo.iterdev(*command).stdout.splitlines()
    allowed = repo.iterdev(*command, "--allow").stdout.splitlines()
    status = repo.iterdev("skill", "status").stdout.splitlines()
    removed = [repo.iterdev("skill", "remove").stdout.splitlines()[-1] for _ in range(2)]

    assert (len(shown), shown[-1]) == (6, "Nothing was written.")
    assert installed[: len(shown) - 1] == shown[:-1]
    assert installed[-1] == "It asks you before it calls iterdev, unless you install with --allow."
    assert allowed[-1] == "Restart your coding agent, and type /team-iterdev (Codex: $team-iterdev)."
    assert status[1].startswith("codex     installed")
    assert removed == ["Removed.", "Nothing is installed."]


def test_a_file_that_stays_is_named_and_the_end_says_that_nothing_was_removed(repo: Repo) -> None:
    repo.iterdev("skill", "install", "--client", "qwen")
    for path in (repo.home / ".agents/skills").rglob("SKILL.md"):
        path.write_text("mine")
    (repo.home / ".qwen/settings.json").unlink()

    lines = repo.iterdev("skill", "remove", "--client", "qwen").stdout.splitlines()

    assert [line.endswith("left alone, because you changed it") for line in lines] == [True, True, False]
    assert lines[-1] == "Nothing was removed."
