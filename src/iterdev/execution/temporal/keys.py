"""The file with the keys that engines and hosts seal their messages with.

Each line is the id of a key and the key itself. The first one seals; the others only open, so that a key can be
replaced while messages that it has sealed are on their way.
"""

import base64
import binascii
import os
import secrets
import stat
from pathlib import Path

from msgspec import Struct

from iterdev.core.errors import HostError, UserError
from iterdev.host import paths, text_files

KEY_BYTES = 32
COMMENT = "# Keys of iterdev. The first one seals messages, all of them open messages. Keep this file secret."


class Key(Struct, frozen=True):
    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"Key({self.id!r})"

    @property
    def line(self) -> str:
        return f"{self.id} {base64.b64encode(self.secret).decode()}\n"


class KeyRing(Struct, frozen=True):
    keys: tuple[Key, ...]
    """At least one; the first one seals."""
    file: str = ""

    @property
    def sealing(self) -> Key:
        return self.keys[0]

    def find(self, key_id: str) -> Key | None:
        return next((key for key in self.keys if key.id == key_id), None)


def new_key() -> Key:
    return Key(secrets.token_hex(4), secrets.token_bytes(KEY_BYTES))


def read_keys(name: str) -> KeyRing:
    path = Path(name).expanduser()
    try:
        mode = path.stat().st_mode
        text = text_files.read(path)
    except FileNotFoundError as error:
        raise UserError(
            f'There is no key at "{path}"',
            hint=f"iterdev key new {path}    # on one machine; then copy the file to the others",
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise HostError(f'Cannot read the key "{path}": {reason}', hint=f"ls -l {path}") from error
    if mode & stat.S_IROTH:
        raise UserError(f'Every user of this machine can read the key "{path}"', hint=f"chmod 600 {path}")
    lines = [line.split() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    keys = tuple(_key(path, words) for words in lines)
    if not keys:
        raise UserError(f'There is no key in "{path}"', hint=f"rm {path} && iterdev key new {path}")
    return KeyRing(keys, str(path))


def _key(path: Path, words: list[str]) -> Key:
    try:
        key_id, encoded = words
        secret = base64.b64decode(encoded, validate=True)
    except (ValueError, binascii.Error):
        secret = b""
    if len(secret) != KEY_BYTES:
        # The line is not shown: it may be a key.
        raise UserError(
            f'A line of "{path}" is no key: expected an id and {KEY_BYTES} bytes in Base64',
            hint="iterdev key new --help",
        )
    return Key(key_id, secret)


def add_key(name: str) -> KeyRing:
    """Writes a new key: the first of a new file, or the last of one that is there."""
    path, key = Path(name).expanduser(), new_key()
    known = read_keys(name).keys if path.exists() else ()
    try:
        paths.make_private(path.parent)
        if known:
            _append(path, key)
        else:
            _create(path, key)
    except OSError as error:
        raise HostError(f'Cannot write the key "{path}": {error.strerror}', hint="iterdev key new PATH") from error
    return KeyRing((*known, key), str(path))


def _create(path: Path, key: Key) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{COMMENT}\n{key.line}")


def _append(path: Path, key: Key) -> None:
    separator = "" if path.read_bytes().endswith(b"\n") else "\n"
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{separator}{key.line}")
