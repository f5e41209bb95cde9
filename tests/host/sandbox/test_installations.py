"""Which folders a program needs, when what is around them is hidden."""

import os
from pathlib import Path

import pytest

from iterdev.host.sandbox.bubblewrap import places_of

PROGRAM = "#!/bin/sh\n"


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PROGRAM, encoding="utf-8")
    path.chmod(0o755)
    return path


def shown(home: Path, *argv: str, search: str = "/usr/bin") -> list[str]:
    return [str(place.relative_to(home)) for place in places_of(argv, search, [home])]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path.resolve() / "home"
    home.mkdir()
    return home


@pytest.mark.parametrize(
    ("program", "place"),
    [
        (".nvm/versions/node/v22/bin/node", ".nvm/versions/node/v22"),
        (".pyenv/shims/python", ".pyenv"),
        ("agents/mine/run.py", "agents/mine"),
        ("bin/tool", "bin"),
        (".local/bin/tool", ".local/bin"),
        (".cargo/bin/tool", ".cargo/bin"),
        (".config/tool", ".config/tool"),
        ("lonely", "lonely"),
        ("lib/node_modules/pack/node_modules/other/cli.js", "lib/node_modules"),
    ],
)
def test_a_program_is_shown_with_what_belongs_to_it_and_no_more(home: Path, program: str, place: str) -> None:
    assert shown(home, str(put(home / program))) == [place]


def test_what_is_above_a_hidden_place_is_not_shown_as_a_whole(home: Path, tmp_path: Path) -> None:
    program = put(tmp_path.resolve() / "bin" / "tool")

    assert places_of([str(program)], "/usr/bin", [tmp_path.resolve().parent, home]) == [program.parent]


def test_links_are_followed_step_by_step(home: Path) -> None:
    put(home / ".local" / "share" / "agent" / "versions" / "2.1")
    for link, target in {
        ".local/bin/agent": "../../first/agent",
        "first/agent": "../.local/share/agent/versions/2.1",
    }.items():
        (home / link).parent.mkdir(parents=True, exist_ok=True)
        (home / link).symlink_to(target)

    assert shown(home, str(home / ".local/bin/agent")) == [".local/bin", "first", ".local/share/agent/versions"]


def test_a_folder_that_is_a_link_is_shown_where_it_is_and_where_it_leads(home: Path) -> None:
    put(home / "java" / "21" / "bin" / "java")
    (home / "java" / "current").symlink_to("21")

    assert shown(home, str(home / "java" / "current" / "bin" / "java")) == ["java/current", "java/21"]


def test_a_home_behind_a_link_is_known_by_both_names(home: Path, tmp_path: Path) -> None:
    put(home / "tools" / "bin" / "tool")
    (tmp_path / "link").symlink_to(home)

    assert shown(home, str(tmp_path / "link" / "tools" / "bin" / "tool")) == ["tools"]


def test_every_folder_of_the_search_path_is_shown_and_the_program_is_found_there(home: Path) -> None:
    put(home / "one" / "bin" / "tool")
    put(home / "two" / "other")

    found = shown(home, "tool", search=f"{home}/one/bin{os.pathsep}{home}/two{os.pathsep}{home}/absent{os.pathsep}.")

    assert found == ["one", "two"]


def test_arguments_that_are_files_are_shown_too_and_other_arguments_are_not(home: Path) -> None:
    script = put(home / "scripts" / "agent.py")

    assert shown(home, "python3", str(script), "--flag", "scripts", f"{home}/absent/x", "x" * 10_000) == ["scripts"]


def test_what_is_outside_of_the_roots_needs_no_showing(home: Path, tmp_path: Path) -> None:
    assert places_of([str(put(tmp_path / "elsewhere" / "bin" / "tool"))], "/usr/bin:/bin", [home]) == []
