"""What a machine offers as a host: host.toml, and the command line."""

from pathlib import Path

import pytest

from iterdev.app.remote.host_file import host_file, read_host_settings
from iterdev.core.errors import UserError


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({"HOME": "/home/a"}, "/home/a/.config/iterdev/host.toml"),
        ({"HOME": "/home/a", "XDG_CONFIG_HOME": "/etc/a"}, "/etc/a/iterdev/host.toml"),
    ],
)
def test_the_file_is_where_configuration_of_a_user_is(environment: dict[str, str], path: str) -> None:
    assert host_file(environment) == Path(path)


def test_without_a_file_a_host_has_the_name_of_its_machine(tmp_path: Path) -> None:
    settings = read_host_settings(tmp_path / "host.toml")

    assert settings.name
    assert settings.agents == {}


def test_agents_of_the_command_line_replace_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "host.toml"
    file.write_text('[agents.claude]\nslots = 4\nmodel = "opus"\n[agents.codex]\n')

    settings = read_host_settings(file, ["claude=2"])

    assert [(name, one.slots, one.model) for name, one in settings.agents.items()] == [("claude", 2, "opus")]


@pytest.mark.parametrize("text", ["=2", "claude=0", "claude=many", "claude=-1"])
def test_slots_that_are_no_number_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="is not NAME=SLOTS"):
        read_host_settings(tmp_path / "host.toml", [text])


def test_an_unknown_agent_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match='did you mean "claude"'):
        read_host_settings(tmp_path / "host.toml", ["cluade=2"])


def test_a_file_that_is_no_toml_is_named(tmp_path: Path) -> None:
    file = tmp_path / "host.toml"
    file.write_text("[agents")

    with pytest.raises(UserError, match="is not valid TOML"):
        read_host_settings(file)
