"""Files of people's own clients: each is changed in place, by as little as possible, and can be put back exactly.

A record beside iterdev's own state lists what was created and what was inserted, and is deleted when all of it is
removed.
"""

import hashlib
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev import __version__
from iterdev.app.clients import json_text
from iterdev.app.clients.json_text import NotJson
from iterdev.app.clients.layout import JsonEntry, JsonItems, OwnFile, Part, TomlTables
from iterdev.core.errors import HostError, UserError
from iterdev.host import paths, toml_text

RECORD = "clients.json"
_MARK = re.compile(r"iterdev [\w.]+ ([0-9a-f]{16})")
BEGIN, END = "# iterdev: begin\n", "# iterdev: end\n"


class Record(Struct, kw_only=True):
    """What was made on this machine, by absolute paths."""

    own_folders: list[str] = []
    """Those that the record itself needed, the innermost first."""
    folders: list[str] = []
    files: list[str] = []
    """Settings that did not exist before."""
    inserted: dict[str, list[str]] = {}
    """Texts that were put into settings, by the file and the entry."""

    def texts(self, part: Part) -> list[str]:
        return self.inserted.get(_entry(part), [])

    @property
    def is_empty(self) -> bool:
        return not (self.folders or self.files or self.inserted)


def _entry(part: Part) -> str:
    keys = () if isinstance(part, OwnFile) else part.keys
    return f"{part.path} {'.'.join(keys)}"


def read_record() -> Record:
    try:
        return msgspec.json.decode((paths.state_root() / RECORD).read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError):
        return Record()


def write_record(record: Record) -> None:
    path = paths.state_root() / RECORD
    if not record.is_empty:
        record.own_folders += [str(one) for one in path.parents if not one.exists()]
        paths.make_private(path.parent)
        write(path, msgspec.json.format(msgspec.json.encode(record)).decode() + "\n")
        return
    path.unlink(missing_ok=True)
    with suppress(OSError):
        for folder in record.own_folders:
            Path(folder).rmdir()


def read(path: Path) -> str | None:
    """The text with its line ends as they are; None if there is no file."""
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise UserError(f'"{path}" is not UTF-8 text: {error}', hint="save it as UTF-8") from error
    except OSError as error:
        raise HostError(f'Cannot read "{path}": {error.strerror}', hint="check its permissions") from error


def write(path: Path, text: str) -> None:
    """Replaces a file at once; a link stays one, and so do the permissions."""
    target = path.resolve()
    try:
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode("utf-8"))
            Path(name).chmod(0o644 if mode is None else mode)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise HostError(f'Cannot write "{path}": {error.strerror}', hint=f"make {path.parent} writable") from error


def marked(part: OwnFile) -> str:
    """The text of a file of ours, with a last line that says so, and by which a change of the user is noticed."""
    begin, end = part.comment
    return f"{part.text}{begin}iterdev {__version__} {_digest(part.text)}{end}\n"


def is_ours(text: str) -> bool:
    """Whether a file is one of ours that nobody has changed."""
    *lines, last = text.splitlines(keepends=True) or [""]
    found = _MARK.search(last)
    return bool(found and found[1] == _digest("".join(lines)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_there(part: Part, text: str | None) -> bool:
    """Whether the part is in the file just as it would be made."""
    if text is None:
        return False
    match part:
        case OwnFile():
            return text == marked(part)
        case JsonEntry(keys=keys, value=value):
            node = _found(part, text, keys)
            return node is not None and node.value == value
        case JsonItems():
            return not _missing(part, text)
        case TomlTables(keys=keys):
            return _table(part, text, keys) == _table(part, part.text, keys)


def is_taken(part: Part, text: str | None, record: Record) -> bool:
    """Whether something of the user is where the part would be."""
    if text is None or is_there(part, text):
        return False
    known = record.texts(part)
    match part:
        case OwnFile():
            return not is_ours(text)
        case JsonEntry(keys=keys):
            return _found(part, text, keys) is not None and not any(one in text for one in known)
        case JsonItems():
            return False
        case TomlTables(keys=keys):
            # Codex writes tables of its own before a comment that is the end of the file.
            ours = any(one.removesuffix(END) in text for one in known) if known else BEGIN in text
            return _table(part, text, keys) is not None and not ours


def put(part: Part, record: Record) -> None:
    """Makes the part, in place of an older one of ours."""
    before = read(part.path)
    if before is not None and not isinstance(part, OwnFile):
        taken_out = without(part, before, record)
        if taken_out != before:
            record.inserted.pop(_entry(part), None)
        before = taken_out
    _make_folders(part.path.parent, record)
    if isinstance(part, OwnFile):
        write(part.path, marked(part))
        return
    change = _changed(part, before or "")
    if read(part.path) is None:
        record.files.append(str(part.path))
    write(part.path, change.text)
    record.inserted.setdefault(_entry(part), []).append(change.inserted)


def _changed(part: JsonEntry | JsonItems | TomlTables, text: str) -> json_text.Insertion:
    try:
        match part:
            case JsonEntry(keys=keys, value=value):
                return json_text.with_member(text, keys, value)
            case JsonItems(keys=keys):
                return json_text.with_items(text, keys, _missing(part, text))
            case TomlTables():
                start = "" if not text or text.endswith("\n") else "\n"
                inserted = f"{start}{BEGIN}{part.text}\n{END}"
                toml_text.parse(text + inserted)
                return json_text.Insertion(text=text + inserted, inserted=inserted)
    except (NotJson, ValueError) as error:
        raise _unreadable(part, error) from error


def take(part: Part, record: Record) -> None:
    """Takes the part out again, with the file and the folders that were made for it."""
    before = read(part.path)
    if isinstance(part, OwnFile):
        part.path.unlink()
    elif before is not None:
        after = without(part, before, record)
        was_made = str(part.path) in record.files
        if was_made and not after.strip():
            part.path.unlink()
            record.files.remove(str(part.path))
        elif after != before:
            write(part.path, after)
    if not isinstance(part, OwnFile):
        record.inserted.pop(_entry(part), None)
    _remove_folders(part.path.parent, record)


def without(part: JsonEntry | JsonItems | TomlTables, text: str, record: Record) -> str:
    """The text without the part: without exactly what was put in, or if that was changed since, without the entry."""
    for inserted in record.texts(part):
        if text.count(inserted) == 1:
            after = text.replace(inserted, "")
            if not _has(part, after):
                return after
    try:
        match part:
            case JsonEntry(keys=keys):
                return json_text.without_member(text, keys)
            case JsonItems(keys=keys, items=items):
                return json_text.without_items(text, keys, items)
            case TomlTables(keys=keys):
                return _without_tables(part, text, keys)
    except NotJson as error:
        raise _unreadable(part, error) from error


def _has(part: JsonEntry | JsonItems | TomlTables, text: str) -> bool:
    if not text.strip():
        return False
    match part:
        case JsonEntry(keys=keys):
            return _found(part, text, keys) is not None
        case JsonItems(items=items):
            return len(_missing(part, text)) < len(items)
        case TomlTables(keys=keys):
            return _table(part, text, keys) is not None


def _found(part: Part, text: str, keys: tuple[str, ...]) -> json_text.Node | None:
    if not text.strip("\ufeff \t\r\n"):
        return None
    try:
        return json_text.find(text, keys)
    except NotJson as error:
        raise _unreadable(part, error) from error


def _missing(part: JsonItems, text: str) -> tuple[str, ...]:
    node = _found(part, text, part.keys)
    known = [one.value for one in (node.items or ())] if node else []
    return tuple(item for item in part.items if item not in known)


def _table(part: TomlTables, text: str, keys: tuple[str, ...]) -> object:
    try:
        found: object = toml_text.parse(text)
    except ValueError as error:
        raise _unreadable(part, error) from error
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _without_tables(part: TomlTables, text: str, keys: tuple[str, ...]) -> str:
    """The text without these tables and our marks; tables and comments of others between them stay."""
    named = r"\s*\.\s*".join(rf'"?{re.escape(key)}"?' for key in keys)
    header, ours = re.compile(rf"\s*\[+\s*{named}\s*[.\]]"), False
    kept = []
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            ours = header.match(line) is not None
        is_comment = line.lstrip().startswith("#")
        if line.strip() not in {BEGIN.strip(), END.strip()} and (is_comment or not ours):
            kept.append(line)
    after = "".join(kept)
    try:
        is_out = _table(part, after, keys) is None
    except UserError:
        # Lines of a table can look like the beginning of another one.
        is_out = False
    return after if is_out else text


def _unreadable(part: Part, error: Exception) -> UserError:
    return UserError(f'"{part.path}" cannot be read: {error}', hint="repair it, then try again")


def _make_folders(folder: Path, record: Record) -> None:
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        try:
            one.mkdir()
        except OSError as error:
            raise HostError(f'Cannot make "{one}": {error.strerror}', hint="check its permissions") from error
        record.folders.append(str(one))


def _remove_folders(folder: Path, record: Record) -> None:
    """Removes folders that were made for a part, if nothing else is in them."""
    for one in (folder, *folder.parents):
        if str(one) not in record.folders:
            return
        try:
            one.rmdir()
        except OSError:
            return
        record.folders.remove(str(one))
