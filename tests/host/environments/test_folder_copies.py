"""Copies of folders: which paths in them are replaced, and what they share with their original."""

import subprocess
import sys
from pathlib import Path

import pytest

from iterdev.host.environments.folder_copies import Moves, is_intact, lay, listing

PYTHON = "lib/python3.11/site-packages"


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("/home/u/proj/src\n", "/slot/tree/src\n"),
        ("#!/home/u/proj/.venv/bin/python\n", "#!/slot/env/bin/python\n"),
        ('{"url": "file:///home/u/proj"}', '{"url": "file:///slot/tree"}'),
        ("MAPPING = {'calc': '/home/u/proj/calc'}", "MAPPING = {'calc': '/slot/tree/calc'}"),
        ("/home/u/proj-two/src and /home/u/proj.old", "/home/u/proj-two/src and /home/u/proj.old"),
        ("/mnt/home/u/proj/src", "/mnt/home/u/proj/src"),
        ('"/home/u/my%20code/x"', '"/slot/other%20place/x"'),
    ],
)
def test_a_path_is_replaced_where_its_last_name_ends(text: str, replaced: str) -> None:
    places = {"/home/u/proj": "/slot/tree", "/home/u/proj/.venv": "/slot/env", "/home/u/my code": "/slot/other place"}

    assert Moves(places).apply(text.encode()) == replaced.encode()


def test_links_into_the_old_place_lead_into_the_new_one(tmp_path: Path) -> None:
    source = written(tmp_path / "old", {"real.txt": "x"})
    (source / "absolute").symlink_to(source / "real.txt")
    (source / "relative").symlink_to("real.txt")
    moves = Moves({str(source): str(tmp_path / "new")})

    lay(source, listing(source, moves), tmp_path / "new", moves, root=tmp_path)

    assert (tmp_path / "new" / "absolute").readlink() == tmp_path / "new" / "real.txt"
    assert (tmp_path / "new" / "relative").readlink() == Path("real.txt")


@pytest.mark.parametrize("name", [f"{PYTHON}/module.py", f"{PYTHON}/paths.pth", "bin/tool"])
def test_writing_in_place_to_a_copy_does_not_change_the_original(tmp_path: Path, name: str) -> None:
    source = written(tmp_path / "old", {name: "one\n"})
    lay(source, listing(source, Moves({})), tmp_path / "new", Moves({}), root=tmp_path)

    with (tmp_path / "new" / name).open("a") as file:
        file.write("two\n")

    assert (source / name).read_text() == "one\n"


def test_a_copy_without_hard_links_shares_no_file(tmp_path: Path) -> None:
    source = written(tmp_path / "old", {"a.so": "x", "node_modules/b.js": "y"})

    lay(source, listing(source, Moves({})), tmp_path / "new", Moves({}), root=tmp_path, hard_links=False)

    assert all(path.stat().st_nlink == 1 for path in source.rglob("*") if path.is_file())
    assert (tmp_path / "new" / "node_modules" / "b.js").read_text() == "y"


def test_a_copy_is_intact_until_a_file_is_changed_or_removed(tmp_path: Path) -> None:
    source = written(tmp_path / "old", {"a.py": "x", "b.py": str(tmp_path / "old")})
    moves = Moves({str(source): str(tmp_path / "new")})
    listed = listing(source, moves)
    lay(source, listed, tmp_path / "new", moves, root=tmp_path)

    intact = is_intact(tmp_path / "new", listed)
    (tmp_path / "new" / "a.py").write_text("changed")
    changed = is_intact(tmp_path / "new", listed)
    (tmp_path / "new" / "a.py").unlink()

    assert (intact, changed, is_intact(tmp_path / "new", listed)) == (True, False, False)


def test_a_script_at_a_place_with_a_long_name_can_still_be_run(tmp_path: Path) -> None:
    source = written(tmp_path / "old", {"bin/tool": f"#!{tmp_path}/old/bin/python\nprint('it runs')\n"})
    (source / "bin" / "tool").chmod(0o755)
    target = tmp_path / ("long" * 40)
    moves = Moves({str(source): str(target)})
    lay(source, listing(source, moves), target, moves, root=tmp_path)
    (target / "bin" / "python").symlink_to(sys.executable)

    output = subprocess.run([target / "bin" / "tool"], capture_output=True, text=True, check=True).stdout

    assert output == "it runs\n"
