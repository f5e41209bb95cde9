"""Fetches the archives of packages with the registries' own clients, and makes a repository of each."""

import fcntl
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from packages import Package

SOURCES = Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))
GIT = ("git", "-c", "user.name=Corpus", "-c", "user.email=corpus@example.invalid", "-c", "core.autocrlf=false")


def fetched(package: Package, cache: Path) -> Path:
    """The archive, downloaded unless it is in the cache, with the hash that the list says."""
    archive = cache / "archives" / f"{package.registry}-{package.name.replace('/', '-')}-{package.version}"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            CLIENTS[package.registry](package, Path(folder), cache)
            (downloaded,) = Path(folder).iterdir()
            downloaded.replace(archive)
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != package.sha256:
        raise SystemExit(f'{package.name} {package.version} has the hash "{found}", not "{package.sha256}"')
    return archive


def _pypi(package: Package, folder: Path, _: Path) -> None:
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary=:all:")
    _run(sys.executable, "-m", "pip", "download", *options, f"{package.name}=={package.version}", cwd=folder)


def _npm(package: Package, folder: Path, _: Path) -> None:
    _run("npm", "pack", "--silent", f"{package.name}@{package.version}", cwd=folder)


def _debian(package: Package, folder: Path, cache: Path) -> None:
    options = ("-qq", "--download-only", "--tar-only")
    _run("apt-get", *_source_lists(cache / "apt"), "source", *options, f"{package.name}={package.version}", cwd=folder)


CLIENTS: Mapping[str, Callable[[Package, Path, Path], None]] = {"pypi": _pypi, "npm": _npm, "debian": _debian}


def _source_lists(folder: Path) -> tuple[str, ...]:
    """Options with which apt knows the source packages of the machine's own sources; few machines have their lists."""
    parts, lists = folder / "sources", folder / "lists"
    options = (
        *("-o", "Dir::Etc::SourceList=/dev/null", "-o", f"Dir::Etc::SourceParts={parts}"),
        *("-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={folder / 'cache'}", "-o", "APT::Sandbox::User=root"),
    )
    with _locked(folder):
        if not (folder / "updated").exists():
            for place in (lists / "partial", folder / "cache/archives/partial", parts):
                place.mkdir(parents=True, exist_ok=True)
            for file in SOURCES:
                if file.suffix in {".list", ".sources"} and file.is_file():
                    (parts / file.name).write_text(_with_sources(file.read_text()))
            _run("apt-get", *options, "update", "-qq", cwd=folder)
            (folder / "updated").touch()
    return options


def _with_sources(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(
        line.replace("deb", "deb-src", 1) if line.startswith("deb ") or line.split() == ["Types:", "deb"] else line
        for line in lines
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def repository(archive: Path, folder: Path) -> Path:
    """The top of a new repository with one commit: the content of the archive."""
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    for command in (("init", "-q", "-b", "main"), ("add", "-A", "-f"), ("commit", "-q", "-m", "As published")):
        _run(*GIT, *command, cwd=top)
    return top


def _run(*argv: str, cwd: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"`{' '.join(argv)}` failed with {done.returncode}: {done.stderr or done.stdout}")
