"""One package, tried as its user would: `iterdev run` with an agent that makes a change, and nothing configured."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import fetch
import msgspec
from msgspec import Struct
from packages import Change, Package

HERE = Path(__file__).parent
CRATES = Path("/usr/share/cargo/registry")
CARGO = '[source.crates-io]\nreplace-with = "installed"\n[source.installed]\ndirectory = "{}"\n'
SETTINGS = '[run]\nagent = "corpus"\nsandbox = {sandbox}\n[agents.corpus]\ncommand = {command}\n'


class Session(Struct, frozen=True, kw_only=True):
    """How `iterdev run` ended."""

    exit_code: int
    suite: str
    """The test command that was found."""
    tests: int
    regressions: tuple[str, ...]
    reasons: tuple[str, ...]
    environment: tuple[str, ...]
    seconds: float


class Trial(Struct, frozen=True, kw_only=True):
    package: Package
    harmless: Session
    breaking: Session
    disk: int
    """Bytes that the environment takes."""

    @property
    def is_false_pass(self) -> bool:
        return self.breaking.exit_code == 0

    @property
    def is_counted_as_by_hand(self) -> bool:
        return self.harmless.tests == self.package.tests

    @property
    def is_regression_noticed(self) -> bool:
        return self.breaking.exit_code == 1 and bool(self.breaking.regressions)

    @property
    def is_right(self) -> bool:
        return self.harmless.exit_code == 0 and self.is_counted_as_by_hand and self.is_regression_noticed


def tried(package: Package, cache: Path, scratch: Path, *, sandbox: bool) -> Trial:
    top = fetch.repository(fetch.fetched(package, cache), scratch / "checkout")
    variables = {**user(cache, scratch), "ITERDEV_HOME": str(scratch / "home")}
    if package.active:
        by_hand(package.setup, top, variables)
        variables |= active(top, variables)
    harmless = _session(package.harmless, top, scratch, variables, sandbox=sandbox)
    breaking = _session(package.breaking, top, scratch, variables, sandbox=sandbox)
    return Trial(package=package, harmless=harmless, breaking=breaking, disk=_size(scratch / "home" / "environments"))


def user(cache: Path, scratch: Path) -> dict[str, str]:
    """The variables of a user who has uv, and none of those with which this was started."""
    uv = cache / "bin" / "uv"
    uv.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        uv.symlink_to(Path(sys.executable).with_name("uv"))
    _use_installed_crates(scratch)
    foreign = ("GIT_", "ITERDEV_", "PYTHON", "PYTEST_", "VIRTUAL_ENV", "npm_", "MAKE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return kept | {"PATH": f"{uv.parent}:{os.environ['PATH']}"}


def _use_installed_crates(scratch: Path) -> None:
    """Crates come from packages of the system where these are installed; cargo reads the settings above a checkout."""
    if CRATES.is_dir():
        (scratch / ".cargo").mkdir()
        (scratch / ".cargo" / "config.toml").write_text(CARGO.format(CRATES), encoding="utf-8")


def active(top: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """What activating the virtual environment of a checkout sets."""
    home = top / ".venv"
    return {"VIRTUAL_ENV": str(home), "PATH": f"{home / 'bin'}:{variables['PATH']}"} if home.is_dir() else {}


def by_hand(command: str, top: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ("sh", "-c", command),
        cwd=top,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def _session(change: Change, top: Path, scratch: Path, variables: Mapping[str, str], *, sandbox: bool) -> Session:
    file = scratch / "change.json"
    file.write_bytes(msgspec.json.encode(change))
    command = json.dumps([sys.executable, str(HERE / "agent.py"), str(file)])
    settings = SETTINGS.format(command=command, sandbox=str(sandbox).lower())
    (top / "iterdev.toml").write_text(settings, encoding="utf-8")
    started = time.monotonic()
    argv = (
        Path(sys.executable).with_name("iterdev"),
        "run",
        "-y",
        "--pipeline",
        "patch",
        "--json",
        f"Edit {change.file}",
    )
    done = subprocess.run(
        argv, cwd=top, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    seconds = time.monotonic() - started
    if not done.stdout:
        raise SystemExit(f"`iterdev run` ended with {done.returncode}: {done.stderr}")
    said = json.loads(done.stdout)
    verified = json.loads((top / said["folder"] / "verify/verify-001.json").read_text(encoding="utf-8"))
    return Session(
        exit_code=done.returncode,
        suite=verified["command"],
        tests=verified["total"] + len(verified["known_failures"]),
        regressions=tuple(verified["regressions"]),
        reasons=tuple(text.replace(f"{scratch}/", "") for text in said["reasons"]),
        environment=tuple(text.replace(f"{scratch}/", "") for text in said["environments"]),
        seconds=seconds,
    )


def _size(folder: Path) -> int:
    """What the files of a folder take, each counted once."""
    found = {(status.st_dev, status.st_ino): status.st_blocks * 512 for status in _statuses(folder)}
    return sum(found.values())


def _statuses(folder: Path) -> Iterator[os.stat_result]:
    for where, _, names in os.walk(folder):
        yield from (os.lstat(Path(where, name)) for name in names)
