"""Files that an agent can have written, with real links, pipes and sizes."""

import errno
import os
from pathlib import Path

import pytest

from iterdev.core.errors import HostError
from iterdev.host import untrusted_files
from iterdev.host.environments.python.declaration_files import requirement_lines
from iterdev.host.git import confinement
from iterdev.host.untrusted_files import LINKS, PRIVATE, read_beginning, read_bytes, read_or_empty, write_bytes
from iterdev.host.workspaces import untracked_files

SECRET = b"the-key-of-the-user"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The worktree of a workspace, beside a file that is the user's."""
    (tmp_path / "secret").write_bytes(SECRET)
    (tmp_path / "slot" / PRIVATE).mkdir(parents=True)
    tree = tmp_path / "slot" / "tree"
    tree.mkdir()
    (tree / "plain").write_bytes(b"plain")
    return tree


def test_a_plain_file_is_read(tree: Path) -> None:
    assert read_bytes(tree / "plain") == b"plain"


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("link", "../../secret", "link"),
        ("link", "{root}/secret", "link"),
        ("folder", "../..", "folder/secret"),
        ("folder", "{root}", "folder/secret"),
        ("folder", "/proc/self/root{root}", "folder/secret"),
        ("two", "one", "two"),
    ],
)
def test_no_link_leads_out(tree: Path, tmp_path: Path, link: str, target: str, path: str) -> None:
    (tree / "one").symlink_to("../../secret")
    (tree / link).symlink_to(target.format(root=tmp_path))

    assert read_or_empty(tree / path) == b""
    with pytest.raises(OSError, match=r".") as refused:
        read_bytes(tree / path)
    assert refused.value.errno in {errno.EXDEV, errno.ELOOP, errno.ENOTDIR}


@pytest.mark.parametrize("path", ["../../secret", "sub/../../../secret"])
def test_a_name_does_not_lead_out(tree: Path, path: str) -> None:
    assert read_or_empty(tree / path) == b""


def test_a_link_inside_of_the_workspace_counts(tree: Path) -> None:
    (tree / "link").symlink_to("plain")

    assert read_bytes(tree / "link") == b"plain"


def test_a_link_that_the_configuration_asks_for_counts_and_another_one_does_not(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "modules" / "lib").mkdir(parents=True)
    (tmp_path / "modules" / "lib" / "file").write_bytes(b"shared")
    (tmp_path / "modules" / "lib" / "out").symlink_to(tmp_path / "secret")
    (tree / "modules").symlink_to(tmp_path / "modules")
    before = read_or_empty(tree / "modules" / "lib" / "file")
    (tree.parent / PRIVATE / LINKS).write_bytes(os.fsencode(tmp_path / "modules"))

    assert before == b""
    assert read_bytes(tree / "modules" / "lib" / "file") == b"shared"
    assert read_or_empty(tree / "modules" / "lib" / "out") == b""


def test_a_folder_that_looks_like_a_workspace_does_not_count_inside_of_one(tree: Path, tmp_path: Path) -> None:
    inner = tree / "a" / "tree"
    inner.mkdir(parents=True)
    (inner.parent / PRIVATE).mkdir()
    (inner.parent / PRIVATE / LINKS).write_bytes(os.fsencode(tmp_path))
    (inner.parent / PRIVATE / "git.json").write_bytes(b'{"words": ["evil"]}')
    (inner / "link").symlink_to(tmp_path)

    assert untrusted_files.root_of(inner / "link") == tree
    assert read_or_empty(inner / "link" / "secret") == b""
    assert confinement.prefix(inner) == ()


def test_a_pipe_does_not_block_and_a_folder_is_no_file(tree: Path) -> None:
    os.mkfifo(tree / "pipe")

    assert read_or_empty(tree / "pipe") == b""
    assert read_or_empty(tree) == b""


def test_a_file_that_is_too_large_is_not_read_and_its_beginning_can_be(tree: Path) -> None:
    with (tree / "large").open("wb") as file:
        file.truncate(700_000_000)

    assert read_or_empty(tree / "large") == b""
    assert read_beginning(tree / "large", 3) == b"\0\0\0"


def test_what_is_written_replaces_a_link_and_does_not_follow_it(tree: Path, tmp_path: Path) -> None:
    (tree / "link").symlink_to(tmp_path / "secret")

    write_bytes(tree / "link", b"new", root=tree)
    write_bytes(tree / "a" / "b" / "new", b"new", root=tree)

    assert (tmp_path / "secret").read_bytes() == SECRET
    assert (tree / "link").read_bytes() == (tree / "a" / "b" / "new").read_bytes() == b"new"


def test_nothing_is_written_or_deleted_behind_a_link(tree: Path, tmp_path: Path) -> None:
    (tree / "folder").symlink_to(tmp_path)

    with pytest.raises(OSError, match=r"."):
        write_bytes(tree / "folder" / "secret", b"", root=tree)
    untrusted_files.remove(tree / "folder" / "secret", root=tree)

    assert (tmp_path / "secret").read_bytes() == SECRET


def test_nothing_is_moved_from_or_to_behind_a_link(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    (tree / "link").symlink_to(outside)
    (tree / "own").mkdir()

    for source, target in ((tree / "link" / "folder", tree / "new"), (tree / "own", tree / "link" / "own")):
        with pytest.raises(OSError, match=r"."):
            untrusted_files.move(source, target, root=tree, target_root=tree)

    assert [path.name for path in outside.iterdir()] == ["folder"]
    assert (tree / "own").is_dir()


@pytest.mark.parametrize(
    ("parts", "content"),
    [(("sub", "file"), b"inside"), (("link",), None), (("folder", "secret"), None), (("..", "..", "secret"), None)],
)
def test_a_kernel_without_openat2_follows_no_link_at_all(
    tree: Path, tmp_path: Path, parts: tuple[str, ...], content: bytes | None
) -> None:
    write_bytes(tree / "sub" / "file", b"inside", root=tree)
    (tree / "link").symlink_to("plain")
    (tree / "folder").symlink_to(tmp_path)
    top = os.open(tree, os.O_RDONLY)

    try:
        with open(untrusted_files.open_without_links(top, parts, os.O_RDONLY), "rb") as file:  # noqa: PTH123
            found = file.read()
    except OSError:
        found = None
    finally:
        os.close(top)

    assert found == content


def test_requirements_name_no_file_outside(tree: Path, tmp_path: Path) -> None:
    (tree / "more.txt").write_text("inside\n", encoding="utf-8")
    lines = (f"-r {tmp_path}/secret", "-r ../../secret", "-r more.txt")
    (tree / "requirements.txt").write_text("\n".join(lines), encoding="utf-8")

    assert list(requirement_lines(tree / "requirements.txt")) == ["inside"]


def test_files_of_the_checkout_are_not_copied_behind_a_link(tree: Path, tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "conf").mkdir(parents=True)
    (top / "conf" / ".env").write_text("KEY=1", encoding="utf-8")
    (tmp_path / "home").mkdir()
    (tree / "conf").symlink_to(tmp_path / "home")

    with pytest.raises(HostError, match="a link in the repository leads outside"):
        untracked_files.bring(top, tree, copies=("conf/.env",), links=())

    assert list((tmp_path / "home").iterdir()) == []
