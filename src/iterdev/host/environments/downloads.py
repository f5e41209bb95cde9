"""What an installer took from the network, read from what it printed, and said in one line."""

import re
from collections.abc import Iterable, Sequence
from posixpath import basename
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from iterdev.core.formatting import counted

NAMED = 5
"""Packages that a line names."""
ARCHIVES = (".whl", ".tar.gz", ".tgz", ".zip", ".tar.bz2")
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}

_PIP = re.compile(r"^[ \t]*Downloading (?P<source>\S+)(?: \((?P<size>[^)\n]{0,50})\))?", re.MULTILINE)
_UV_INSTALLED = re.compile(r"^ \+ (?P<name>[^=\s]+)==(?P<version>\S+)(?P<local> \(from file:)?", re.MULTILINE)
_UV_PREPARED = re.compile(r"^Prepared (\d{1,9}) packages? in ", re.MULTILINE)
_NPM = re.compile(r"^npm http fetch GET 200 (\S+\.tgz) (?!.*\(cache (?:hit|revalidated)\))", re.MULTILINE)
_PNPM = re.compile(r"^Progress: resolved \d+, reused \d+, downloaded (\d{1,9})\b", re.MULTILINE)
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([kmg]?i?)(?:b|bytes)", re.IGNORECASE)
_SDIST = re.compile(r"(?P<name>.+?)-(?P<version>\d[^-]*)$")


class Downloads(Struct, frozen=True, kw_only=True):
    packages: tuple[str, ...] = ()
    """The downloaded ones, as name@version, if the installer names them."""
    count: int = 0
    size: int = 0
    """Bytes, if the installer says how many."""


def read(printed: str, installer: str) -> Downloads | None:
    """None if the installer does not say what it downloaded."""
    match installer:
        case "uv":
            return _read_uv(printed)
        case "pip":
            return _read_pip(printed)
        case "npm":
            return _read_npm(printed)
        case "pnpm" if counts := _PNPM.findall(printed):
            return Downloads(count=int(counts[-1]))
        case _:
            return None


def told(installed: Sequence[str], downloads: Downloads | None) -> str:
    """How many packages there are, how many of them were downloaded, and the first names."""
    text = counted(len(installed), "package")
    if downloads is None:
        return f"{text}{_named(installed)}"
    if not downloads.count:
        return f"{text}, none downloaded{_named(installed)}"
    size = f" ({size_text(downloads.size)})" if downloads.size else ""
    if downloads.count > len(installed):
        return f"{text}, {downloads.count} downloaded{size} with what builds them{_named(downloads.packages)}"
    cached = len(installed) - downloads.count
    others = f"; {cached} {'was' if cached == 1 else 'were'} on this machine" if cached > 0 else ""
    return f"{text}, {downloads.count} downloaded{size}{_named(downloads.packages or installed)}{others}"


def size_text(size: int) -> str:
    """Bytes as people write them: "12 kB", "3.4 MB"."""
    if size < UNITS["m"]:
        return f"{max(1, round(size / UNITS['k']))} kB"
    return f"{size / UNITS['m']:.1f} MB"


def _read_uv(printed: str) -> Downloads:
    """What uv prepares it has downloaded or built; the rest was in its cache."""
    own = sum(match["local"] is not None for match in _UV_INSTALLED.finditer(printed))
    prepared = sum(map(int, _UV_PREPARED.findall(printed)))
    return Downloads(count=max(0, prepared - own))


def _read_pip(printed: str) -> Downloads:
    found = [match for match in _PIP.finditer(printed) if _is_archive(match["source"])]
    packages = tuple(dict.fromkeys(_pip_package(match["source"]) for match in found))
    return Downloads(packages=packages, count=len(packages), size=sum(_bytes(match["size"] or "") for match in found))


def _read_npm(printed: str) -> Downloads:
    packages = tuple(dict.fromkeys(map(_npm_package, _NPM.findall(printed))))
    return Downloads(packages=packages, count=len(packages))


def _named(packages: Sequence[str]) -> str:
    if not packages:
        return ""
    more = f" and {len(packages) - NAMED} more" if len(packages) > NAMED else ""
    return f": {', '.join(packages[:NAMED])}{more}"


def _path(source: str) -> str:
    """The path of an address; empty if it is none."""
    try:
        return urlsplit(source).path
    except ValueError:
        return ""


def _is_archive(source: str) -> bool:
    return _path(source).endswith(ARCHIVES)


def _pip_package(source: str) -> str:
    file = unquote(basename(_path(source)))
    if file.endswith(".whl") and "-" in file:
        name, version, *_ = file.split("-")
        return f"{name.replace('_', '-')}@{version}"
    stem = _without(file, ARCHIVES)
    found = _SDIST.match(stem)
    return f"{found['name']}@{found['version']}" if found else stem


def _npm_package(source: str) -> str:
    """Such as http://registry/@scope/name/-/name-1.0.0.tgz."""
    before, _, file = unquote(_path(source)).rpartition("/-/")
    parts = before.split("/")
    name = "/".join(parts[-2:]) if len(parts) > 1 and parts[-2].startswith("@") else parts[-1]
    return f"{name}@{_without(file, ARCHIVES).removeprefix(f'{parts[-1]}-')}"


def _without(text: str, endings: Iterable[str]) -> str:
    return next((text.removesuffix(ending) for ending in endings if text.endswith(ending)), text)


def _bytes(size: str) -> int:
    found = _SIZE.search(size)
    return round(float(found[1]) * UNITS[found[2].lower()]) if found else 0
