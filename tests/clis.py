"""The real coding agents that `make test` installs, and the processes that they must not leave behind."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

CLIS = ("claude", "codex", "gemini", "qwen")
INSTALLED = Path(__file__).parents[1] / ".agents" / "node_modules"
BINARIES = {
    # Their launchers are linked by install scripts, which we do not run.
    "claude": f"@anthropic-ai/claude-code-{sys.platform}-*/claude",
    "codex": f"@openai/codex-{sys.platform}-*/vendor/*/bin/codex",
}


OPTIONAL = Path(__file__).parents[1] / ".agents-optional"
OPTIONAL_BINARIES = {
    "opencode": "opencode-*/bin/opencode",
    "copilot": "@github/copilot-*/copilot",
    "goose": "@aaif/goose-binary-*/bin/goose",
    "kimi": ".bin/kimi",
}
NEWER_NODE = "kimi/node_modules/node-*/bin/node"
"""A program that one of them needs, and that the machine need not have."""


def find_cli(name: str) -> Path:
    """A coding agent that `make test` has installed, or one of the folder that ITERDEV_TEST_CLIS names."""
    folder = Path(os.environ.get("ITERDEV_TEST_CLIS") or INSTALLED)
    found = next(folder.glob(BINARIES.get(name, f".bin/{name}")), None)
    assert found, f"{name} is not in {folder}: run `make .agents/.installed`"
    return found


def find_optional_cli(name: str) -> Path | None:
    """A coding agent that `make test` installs where it can, or none where it cannot."""
    return next((OPTIONAL / name / "node_modules").glob(OPTIONAL_BINARIES[name]), None)


def install(name: str, folder: Path) -> bool:
    """Makes a coding agent of the tests a program of the folder, with the node that it needs."""
    program = find_optional_cli(name) if name in OPTIONAL_BINARIES else find_cli(name)
    if program is None:
        # A contributor's machine need not be one that an agent is made for; that of CI is.
        assert not os.environ.get("CI"), f"{name} is not in {OPTIONAL}: run `make .agents-optional/.tried`"
        return False
    (folder / name).symlink_to(program.resolve())
    for node in OPTIONAL.glob(NEWER_NODE) if name == "kimi" else ():
        (folder / "node").symlink_to(node.resolve())
    return True


def install_all(folder: Path) -> None:
    for name in (*CLIS, *OPTIONAL_BINARIES):
        install(name, folder)


def alive(mark: str) -> list[str]:
    """The command lines of the processes that have the mark in their environment."""
    return [command_line(pid) for pid in pids_with(mark)]


def pids_with(mark: str) -> Iterator[int]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment, stat = (process / "environ").read_bytes(), (process / "stat").read_text()
        except OSError:
            continue
        if mark.encode() in environment and ") Z " not in stat:
            yield int(process.name)


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
    except OSError:
        return ""
