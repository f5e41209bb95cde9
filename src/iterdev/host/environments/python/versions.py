"""Names and versions of requirements: as Poetry writes them, and as lock files pin them."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from iterdev.host.environments.python.declaration_files import (
    as_strings,
    as_tables,
    as_text,
    read_bytes,
    read_toml,
    subtable,
)


def pins(tree: Path) -> Iterator[str]:
    """The versions of lock files, as constraints; a package that is locked in two versions is left open."""
    versions: dict[str, set[str]] = {}
    for name in ("poetry.lock", "pdm.lock", "pylock.toml", "uv.lock"):
        document = read_toml(tree / name)
        for package in (*as_tables(document.get("package")), *as_tables(document.get("packages"))):
            source = package.get("source")
            if isinstance(source, Mapping) and {"editable", "virtual", "directory", "path", "git"} & set(source):
                continue
            if version := as_text(package.get("version")):
                versions.setdefault(normalized(as_text(package.get("name"))), set()).add(version)
    with suppress(ValueError, RecursionError):
        locked: object = msgspec.json.decode(read_bytes(tree / "Pipfile.lock") or b"{}")
        for section in ("default", "develop"):
            for name, locked_package in subtable(locked, section).items():
                version = as_text(subtable(locked_package).get("version"))
                if version.startswith("=="):
                    versions.setdefault(normalized(name), set()).add(version[2:])
    yield from (f"{name}=={next(iter(found))}" for name, found in sorted(versions.items()) if len(found) == 1 and name)


def poetry_requirements(table: Mapping[str, object]) -> Iterator[str]:
    for name, value in table.items():
        options = value if isinstance(value, Mapping) else {"version": value}
        if name == "python" or {"path", "git", "url"} & set(options) or options.get("optional"):
            continue
        extras = f"[{','.join(as_strings(options.get('extras')))}]" if options.get("extras") else ""
        version = ",".join(poetry_versions(as_text(options.get("version"))))
        markers = [
            text for text in (as_text(options.get("markers")), _python_marker(as_text(options.get("python")))) if text
        ]
        condition = f" ; {' and '.join(f'({marker})' for marker in markers)}" if markers else ""
        yield f"{name}{extras}{version}{condition}"


def _python_marker(versions: str) -> str:
    parts = (re.fullmatch(r"(\D+)([\d.]+)(?:\.\*)?", version) for version in poetry_versions(versions))
    return " and ".join(f'python_version {match[1]} "{match[2]}"' for match in parts if match)


def poetry_versions(text: str) -> Iterator[str]:
    """Poetry's version ranges as those of pip; alternatives are left open."""
    if "||" in text or "|" in text:
        return
    for raw in text.split(","):
        part = raw.strip().replace(" ", "")
        match = re.fullmatch(r"([\^~]|~=)?v?(\d{1,9}(?:\.\d{1,9})*)(\S*)", part)
        if part in {"", "*"}:
            continue
        if match and match[1] in {"^", "~"}:
            numbers = [int(number) for number in match[2].split(".")]
            yield f">={match[2]}{match[3]}"
            yield f"<{'.'.join(map(str, _next(numbers, caret=match[1] == '^')))}"
        elif match and not match[1]:
            yield f"=={part}"
        else:
            yield part


def _next(numbers: list[int], *, caret: bool) -> list[int]:
    if caret:
        place = next((index for index, number in enumerate(numbers) if number), len(numbers) - 1)
    else:
        place = min(1, len(numbers) - 1)
    return [*numbers[:place], numbers[place] + 1]


def name_of(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9][\w.-]*", requirement.strip())
    return match[0] if match else ""


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
