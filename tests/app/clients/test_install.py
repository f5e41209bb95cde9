"""What is installed in people's own clients can be removed without a trace, and what people changed stays."""

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from iterdev.app.clients import install, settings_files
from iterdev.app.clients.install import ClientName, Place, Scope
from iterdev.app.clients.layout import OwnFile, parts
from iterdev.core.errors import UserError

COMMENTED = '// mine\n{\n    "theme": "dark", // "mcpServers": {}\n    "mcpServers": {"x": {"command": "y"},},\n}\n'
ODD = '{"permissions":{"allow":["Bash(ls)"] , "deny":[ ]},\r\n  "mcp" :{ } }'
TOML = 'model = "gpt-5.5"   # odd\n\n[mcp_servers.x]\ncommand="y"\n[projects."/a b"]\ntrust_level = "trusted"'
SETTINGS = {
    ".claude.json": '{"numStartups":3,"mcpServers":{}}',
    ".claude/settings.json": ODD,
    ".claude/skills/mine/SKILL.md": "---\nname: mine\n---\n",
    ".codex/config.toml": TOML,
    ".gemini/settings.json": COMMENTED,
    ".qwen/settings.json": '{\n\t"$version": 3\n}\n',
    ".config/opencode/opencode.jsonc": COMMENTED,
    ".agents/skills/mine/SKILL.md": "mine",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with settings of the user in it."""
    home = tmp_path / "home"
    monkeypatch.setenv("ITERDEV_HOME", str(home / ".local/state/iterdev"))
    for name, text in SETTINGS.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(text.encode())
    (home / ".claude.json").chmod(0o600)
    (home / ".gemini/commands").mkdir()
    return home


def where(home: Path, *, allow: bool = True, command: str = "/opt/a b/iterdev", **variables: str) -> Place:
    environment = {"HOME": str(home), "PATH": os.defpath, **variables}
    return install.place(Scope.user, home, allow=allow, environment=environment, command=command)


def everything(top: Path) -> dict[str, tuple[int, bytes | None]]:
    """Every folder and file, with its mode."""
    paths = sorted(top.rglob("*"))
    return {str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else None) for path in paths}


@pytest.mark.parametrize("client", [*ClientName, None])
@pytest.mark.parametrize("allow", [True, False])
def test_removing_what_was_installed_leaves_every_byte_as_it_was(
    home: Path, client: ClientName | None, *, allow: bool
) -> None:
    clients = (client,) if client else tuple(ClientName)
    before = everything(home)

    steps = install.install(clients, where(home, allow=allow))
    between = everything(home)
    install.remove(clients, where(home))

    assert {step.action for step in steps} <= {"create", "change"}
    assert between != before
    assert everything(home) == before


@pytest.mark.parametrize("client", ClientName)
def test_in_an_empty_home_nothing_stays(tmp_path: Path, client: ClientName) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()

    install.install([client], where(empty))
    install.remove([client], where(empty))

    assert everything(empty) == {}


def test_what_is_written_is_what_was_listed(home: Path) -> None:
    before = everything(home)

    planned = install.plan_install(tuple(ClientName), where(home))

    assert everything(home) == before
    done = install.install(tuple(ClientName), where(home))
    written = {path for path, seen in everything(home).items() if seen[1] is not None and before.get(path) != seen}
    assert planned == done
    assert written - {str(home / ".local/state/iterdev/clients.json")} == {step.path for step in done}


def test_each_client_can_read_its_settings_and_finds_the_server(home: Path) -> None:
    install.install(tuple(ClientName), where(home))

    claude = json.loads((home / ".claude.json").read_text())
    codex = tomllib.loads((home / ".codex/config.toml").read_text())
    assert claude["mcpServers"]["iterdev"] == {
        "type": "stdio",
        "command": "/opt/a b/iterdev",
        "args": ["mcp", "--no-prompts"],
    }
    assert codex["mcp_servers"]["iterdev"]["args"] == ["mcp", "--no-prompts"]
    assert codex["mcp_servers"]["iterdev"]["tools"]["run"] == {"approval_mode": "approve"}
    assert codex["projects"]["/a b"] == {"trust_level": "trusted"}
    assert tomllib.loads((home / ".gemini/commands/team-issue.toml").read_text())["prompt"].count("{{args}}") == 1
    assert (home / ".claude.json").stat().st_mode & 0o777 == 0o600


def test_nothing_that_accepts_or_undoes_work_is_allowed_without_asking(home: Path) -> None:
    install.install(tuple(ClientName), where(home))

    texts = [path.read_text() for path in home.rglob("*") if path.is_file() and path.name != "clients.json"]
    assert not any(f"iterdev__{tool}" in text for text in texts for tool in ("accept", "rollback"))
    assert not any(f"tools.{tool}" in text for text in texts for tool in ("accept", "rollback"))


def test_a_second_installation_changes_nothing_and_a_newer_one_replaces_the_first(home: Path) -> None:
    before = everything(home)
    install.install(tuple(ClientName), where(home, command="/old/iterdev"))
    first = everything(home)

    again = install.install(tuple(ClientName), where(home, command="/old/iterdev"))
    unchanged = everything(home) == first
    install.install(tuple(ClientName), where(home, command="/new/iterdev"))

    assert {step.action for step in again} == {"keep"}
    assert unchanged
    assert "/old/iterdev" not in "".join(path.read_text() for path in home.rglob("*") if path.is_file())
    install.remove(tuple(ClientName), where(home, command="/new/iterdev"))
    assert everything(home) == before


def test_a_file_that_the_user_changed_is_left_alone_and_named(home: Path) -> None:
    skill = home / ".claude/skills/team-iterdev/SKILL.md"
    install.install([ClientName.claude], where(home))
    skill.write_text(skill.read_text().replace("Change nothing", "Change something"))
    changed = skill.read_text()

    again = install.install([ClientName.claude], where(home, command="/new/iterdev"))
    removed = install.remove([ClientName.claude], where(home, command="/new/iterdev"))

    assert {step.path for step in again if step.action == "leave"} == {str(skill)}
    assert {step.path for step in removed if step.action == "leave"} == {str(skill)}
    assert skill.read_text() == changed
    assert install.status(where(home))[0].changed == (str(skill),)


def test_a_server_of_that_name_which_the_user_made_is_left_alone(home: Path) -> None:
    (home / ".claude.json").write_text('{"mcpServers": {"iterdev": {"command": "mine"}}}')
    (home / ".codex/config.toml").write_text('[mcp_servers.iterdev]\ncommand = "mine"\n')
    before = everything(home)

    steps = install.install([ClientName.claude, ClientName.codex], where(home))
    install.remove([ClientName.claude, ClientName.codex], where(home))

    left = {Path(step.path).name for step in steps if step.action == "leave"}
    assert left == {".claude.json", "config.toml"}
    assert everything(home) == before


def test_what_the_user_adds_beside_it_stays(home: Path) -> None:
    install.install([ClientName.claude, ClientName.codex], where(home))
    servers = json.loads((home / ".claude.json").read_text())
    servers["mcpServers"]["later"] = {"command": "z"}
    (home / ".claude.json").write_text(json.dumps(servers))
    with (home / ".codex/config.toml").open("a") as file:
        file.write('\n[tui]\ntheme = "x"\n')

    install.remove([ClientName.claude, ClientName.codex], where(home))

    assert json.loads((home / ".claude.json").read_text()) == {
        "numStartups": 3,
        "mcpServers": {"later": {"command": "z"}},
    }
    assert tomllib.loads((home / ".codex/config.toml").read_text())["tui"] == {"theme": "x"}
    assert "iterdev" not in (home / ".codex/config.toml").read_text()


ADDED_BY_CODEX = '# mine\n[projects."/b"]\ntrust_level = "trusted"\n\n[tui]\ntheme = "x"\n'


def test_what_codex_writes_between_our_marks_stays(home: Path) -> None:
    config = home / ".codex/config.toml"
    install.install([ClientName.codex], where(home, command="/old/iterdev"))
    written = config.read_text().replace(settings_files.END, f"\n{ADDED_BY_CODEX}{settings_files.END}")
    config.write_text(written)

    status = install.status(where(home, command="/old/iterdev"))[1]
    install.install([ClientName.codex], where(home, command="/new/iterdev"))
    newer = tomllib.loads(config.read_text())
    install.remove([ClientName.codex], where(home, command="/new/iterdev"))

    assert (status.state, status.changed) == ("installed", ())
    assert newer["mcp_servers"]["iterdev"]["command"] == "/new/iterdev"
    assert config.read_text() == f"{TOML}\n{ADDED_BY_CODEX}"


def test_a_server_in_toml_that_the_user_changed_is_left_alone_and_named(home: Path) -> None:
    config = home / ".codex/config.toml"
    install.install([ClientName.codex], where(home))
    config.write_text(changed := config.read_text().replace("4000", "100"))

    steps = install.install([ClientName.codex], where(home, command="/new/iterdev"))
    removed = install.remove([ClientName.codex], where(home, command="/new/iterdev"))

    assert [step.path for step in steps if step.action == "leave"] == [str(config)]
    assert [step.path for step in removed if step.action == "leave"] == [str(config)]
    assert config.read_text() == changed


@pytest.mark.parametrize("allow", [True, False])
def test_the_status_says_what_is_installed(home: Path, *, allow: bool) -> None:
    before = [one.state for one in install.status(where(home))]
    install.install(tuple(ClientName), where(home, allow=allow))
    after = [one.state for one in install.status(where(home))]
    (home / ".codex/config.toml").write_text("")
    (home / ".gemini/commands/team-issue.toml").unlink()

    last = {one.client: one.state for one in install.status(where(home))}

    assert (set(before), set(after)) == ({"not installed"}, {"installed"})
    assert (last[ClientName.codex], last[ClientName.gemini]) == ("partly installed", "partly installed")


def test_skills_that_another_client_uses_stay(home: Path) -> None:
    install.install([ClientName.codex, ClientName.qwen], where(home))

    install.remove([ClientName.qwen], where(home))

    assert (home / ".agents/skills/team-iterdev/SKILL.md").exists()
    assert [one.state for one in install.status(where(home))][1] == "installed"


def test_settings_that_cannot_be_read_are_an_error_and_stay(home: Path) -> None:
    (home / ".gemini/settings.json").write_text("{ nope")

    with pytest.raises(UserError, match="cannot be read"):
        install.install([ClientName.gemini], where(home))

    states = {one.client: (one.state, one.problem) for one in install.status(where(home))}
    assert (home / ".gemini/settings.json").read_text() == "{ nope"
    assert states[ClientName.gemini][0] == "not known"
    assert "cannot be read" in states[ClientName.gemini][1]
    assert states[ClientName.codex] == ("not installed", "")


def test_a_link_to_settings_stays_a_link(home: Path) -> None:
    real = home / "dotfiles.json"
    (home / ".qwen/settings.json").rename(real)
    (home / ".qwen/settings.json").symlink_to(real)

    install.install([ClientName.qwen], where(home))

    assert (home / ".qwen/settings.json").is_symlink()
    assert "iterdev" in real.read_text()


def test_variables_move_the_settings_of_a_client(home: Path, tmp_path: Path) -> None:
    moved = where(home, CLAUDE_CONFIG_DIR=str(tmp_path / "c"), CODEX_HOME=str(tmp_path / "x"))

    install.install([ClientName.claude, ClientName.codex], moved)

    made = {str(path.relative_to(tmp_path)) for path in tmp_path.glob("[cx]/**/*") if path.is_file()}
    assert {"c/.claude.json", "c/skills/team-issue/SKILL.md", "c/settings.json", "x/config.toml"} == made - {
        "c/skills/team-iterdev/SKILL.md"
    }


def own_files() -> Iterator[OwnFile]:
    place = Place(scope=Scope.user, root=Path("/h"), environment={}, program="/opt/iterdev", allow=True)
    for client in ClientName:
        yield from (part for part in parts(client, place) if isinstance(part, OwnFile))


@pytest.mark.parametrize("part", list(own_files()), ids=lambda part: str(part.path))
def test_every_file_is_marked_and_a_change_of_it_is_noticed(part: OwnFile) -> None:
    text = settings_files.marked(part)

    assert settings_files.is_ours(text)
    assert not settings_files.is_ours(text.replace("i", "j", 1))
    assert not settings_files.is_ours(part.text)
    if part.path.suffix == ".toml":
        tomllib.loads(text)
