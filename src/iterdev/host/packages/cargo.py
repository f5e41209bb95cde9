"""Rust crates: versions are read from Cargo.lock; cargo decides with a generated crate whether one fits."""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from iterdev.host import toml_text, untrusted_files
from iterdev.host.packages.shell import Found, Shell

LOCK = "Cargo.lock"
MOST = 20
"""Versions of one crate that are looked at."""


async def find_installed(name: str, version_range: str, shell: Shell) -> Found:
    versions = _locked(shell.tree / LOCK, name)
    if not versions:
        return Found(reason=f"it is not in {LOCK}")
    for version in versions:
        if await _fits(name, version, version_range, shell):
            return Found(version=version, fits=True)
    return Found(version=versions[-1])


async def newest(name: str, version_range: str, shell: Shell) -> tuple[str, bool] | None:
    searched = await shell.run("cargo", "search", "--limit", "10", "--", name)
    # Crates with a similar name may stand above it.
    found = re.search(rf'^{re.escape(name)} = "([^"]+)"', searched.stdout.decode("utf-8", "replace"), re.MULTILINE)
    if searched.code or not found:
        return None
    return found[1], await _fits(name, found[1], version_range, shell)


def _locked(lock: Path, name: str) -> list[str]:
    try:
        document = toml_text.parse(untrusted_files.read_text(lock))
    except ValueError:
        return []
    listed = document.get("package")
    packages = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return [str(package.get("version", "")) for package in packages if package.get("name") == name][:MOST]


async def _fits(name: str, version: str, version_range: str, shell: Shell) -> bool:
    """Whether cargo accepts a crate of this version for the requirement; two local crates need no network."""
    with TemporaryDirectory(dir=shell.temp) as folder:
        crate, user = Path(folder) / "crate", Path(folder) / "user"
        wanted = f"path = {json.dumps(str(crate))}, version = {json.dumps(version_range or '*')}"
        _write(shell, crate, name, version)
        needs = f"[dependencies]\n{json.dumps(name)} = {{ {wanted} }}\n[workspace]\n"
        _write(shell, user, "iterdev-check", "0.0.0", needs)
        asked = await shell.run("cargo", "metadata", "--offline", "--quiet", "--format-version", "1", cwd=user)
    return not asked.code


def _write(shell: Shell, folder: Path, name: str, version: str, more: str = "") -> None:
    shell.write(folder / "src" / "lib.rs", "")
    manifest = f'[package]\nname = {json.dumps(name)}\nversion = {json.dumps(version)}\nedition = "2021"\n{more}'
    shell.write(folder / "Cargo.toml", manifest)
