"""The cache of environments: complete entries only, one maker at a time, and what is known of each entry."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import anyio
import pytest

from iterdev.host.environments.cache import Cache, Entry, Made

pytestmark = pytest.mark.anyio


def published(cache: Cache, folder: Path, key: str = "python-1", text: str = "x = 1\n") -> Entry:
    environment = folder / "environment"
    environment.mkdir(parents=True)
    (environment / "module.py").write_text(text)
    (environment / "path.pth").write_text(f"{folder}/tree\n")
    places = {"environment": str(environment), "tree": str(folder / "tree")}
    return cache.publish(key, Made(ecosystem="python", source="a test", places=places), {"python": environment}, {})


def test_an_entry_is_laid_with_the_paths_of_its_new_place(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    entry = published(cache, tmp_path / "one")

    laid = cache.lay(entry, {"tree": "/slot/tree"}, tmp_path / "two", tmp_path / "tree")

    assert laid
    assert (tmp_path / "two" / "python" / "path.pth").read_text() == "/slot/tree\n"
    assert not (tmp_path / "one" / "environment").exists()


def test_an_entry_whose_files_were_changed_is_removed_instead_of_used(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    entry = published(cache, tmp_path / "one")
    (entry.content / "python" / "module.py").write_text("raise SystemExit\n")

    laid = cache.lay(entry, {}, tmp_path / "two", tmp_path / "tree")

    assert not laid
    assert cache.find(entry.key) is None


def test_a_workspace_without_hard_links_cannot_change_an_entry(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    (tmp_path / "one" / "environment").mkdir(parents=True)
    (tmp_path / "one" / "environment" / "module.so").write_bytes(b"good")
    made = Made(ecosystem="python", source="a test", places={})
    entry = cache.publish("python-1", made, {"python": tmp_path / "one" / "environment"}, {})

    cache.lay(entry, {}, tmp_path / "two", tmp_path / "tree", hard_links=False)
    (tmp_path / "two" / "python" / "module.so").write_bytes(b"evil")

    assert (entry.content / "python" / "module.so").read_bytes() == b"good"


def test_a_link_in_a_workspace_does_not_lead_an_entry_elsewhere(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    entry = published(cache, tmp_path / "one")
    (tmp_path / "home").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "python").symlink_to(tmp_path / "home")

    with pytest.raises(OSError, match=r"."):
        cache.lay(entry, {}, tmp_path / "two", tmp_path / "tree")

    assert list((tmp_path / "home").iterdir()) == []


def test_entries_are_listed_with_their_size_and_last_use_and_can_be_removed(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    published(cache, tmp_path / "one", key="python-1")
    published(cache, tmp_path / "two", key="python-2")
    os.utime(tmp_path / "cache" / "python-1" / "used", (1000, 1000))

    uses = {entry.key: entry.last_use for entry in cache.entries()}
    sizes = {entry.key: entry.size() for entry in cache.entries()}
    cache.remove("python-1")

    assert uses["python-1"] == 1000
    assert sizes["python-2"] > 0
    assert [entry.key for entry in cache.entries()] == ["python-2"]


def test_using_an_entry_renews_its_last_use(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    entry = published(cache, tmp_path / "one")
    os.utime(entry.folder / "used", (1000, 1000))

    cache.lay(entry, {}, tmp_path / "two", tmp_path / "tree")

    assert entry.last_use > 1000


def test_an_engine_that_is_killed_while_it_publishes_leaves_no_entry(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    killed = """
        import os, signal, sys
        from pathlib import Path
        from iterdev.host.environments import cache, folder_copies
        class Mapping(dict):
            def values(self):
                os.kill(os.getpid(), signal.SIGKILL)
        environment = Path(sys.argv[1], "environment")
        environment.mkdir(parents=True)
        made = cache.Made(ecosystem="python", source="", places=Mapping())
        cache.Cache(Path(sys.argv[2])).publish("python-1", made, {"python": environment}, {})
    """
    done = subprocess.run([sys.executable, "-c", dedent(killed), tmp_path / "one", cache.root], check=False)

    entries = list(cache.entries())
    published(cache, tmp_path / "two", key="python-1")

    assert done.returncode == -signal.SIGKILL
    assert entries == []
    assert [entry.key for entry in cache.entries()] == ["python-1"]
    assert list((cache.root / ".making").iterdir()) == []


async def test_a_second_engine_waits_until_the_first_has_made_the_entry(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache")
    order: list[str] = []

    async def make(name: str) -> None:
        async with cache.locked("python-1"):
            if cache.find("python-1") is None:
                order.append(name)
                await anyio.lowlevel.checkpoint()
                published(cache, tmp_path / name)

    async with anyio.create_task_group() as group:
        group.start_soon(make, "one")
        group.start_soon(make, "two")

    assert len(order) == 1
