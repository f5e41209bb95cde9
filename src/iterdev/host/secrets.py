"""The environment variables that agents may see, and the removal of secrets from everything that is written."""

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from iterdev.core.encodable import encodable
from iterdev.core.formatting import MASK, plain
from iterdev.core.results import MOST_LEVELS
from iterdev.host import known_secrets
from iterdev.host.private_keys import PrivateKeys, lines_of, may_contain_key, may_end_in_key, without_private_keys

S = TypeVar("S", bound=Struct)

ALLOWED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TERM|COLORTERM|NO_COLOR|CI|XDG_\w+"
    r"|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|(HTTPS?|NO|ALL|FTP)_PROXY|(https?|no|all|ftp)_proxy|PYENV_\w+|NVM_\w+|VIRTUAL_ENV|GOPATH|GOROOT|GOCACHE"
    r"|CARGO_HOME|RUSTUP_HOME|JAVA_HOME|CONDA_PREFIX|PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|CONFIG_FILE)"
    r"|UV_(DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|OFFLINE|CACHE_DIR|PYTHON_DOWNLOADS)"
    r"|(npm_config|NPM_CONFIG)_(registry|REGISTRY|offline|OFFLINE|cache|CACHE)"
)


def _starting(letter: str) -> str:
    """Where a key may begin: not within a word, but right after an escaped line break or tab of a JSON string.

    The letter comes first, because a search for a pattern that begins with a letter is much faster.
    """
    return rf"{letter}(?:(?<!\w{letter})|(?<=\\[nrt]{letter}))"


KEYS = re.compile(
    rf"{_starting('s')}(?:k-(?:ant-|proj-)?[\w-]{{20,}}|k_(?:live|test)_\w{{16,}}|hpat_\w{{30,}})"
    rf"|{_starting('g')}(?:h[pousr]_\w{{30,}}|ithub_pat_\w{{40,}}|lpat-[\w-]{{20,}})"
    rf"|{_starting('A')}(?:[KS]IA[0-9A-Z]{{16}}\b|Iza[\w-]{{35}})"
    rf"|{_starting('x')}(?:ox[abeprs]-[\w-]{{10,}}|itd_[\w-]{{40,}})"
    rf"|{_starting('n')}pm_\w{{36}}|{_starting('p')}ypi-[\w-]{{50,}}|{_starting('h')}f_[A-Za-z0-9]{{30,}}"
    r"|e(?:(?<![\w-]e)|(?<=\\[nrt]e))yJ[\w-]{10,}+\.eyJ[\w-]{10,}+\.[\w-]{10,}"
    r"|LS0tLS1CRUdJTi(?!BDRVJU)[\w+/=]{20,}"  # a private key once more encoded
)
IN_URLS = re.compile(
    # Only up to the next slash, so that the time is linear. What is filled in later is no password.
    r"(://[^\s/?#:@\"'\\]*+:)(?!\d{1,5}[?#]|(?:\$\{?\w+\}?|<[^>\s/]+>|\{[^}\s/]*\}|%\w|\*+)@)[^\s/\"'\\]+@"
    r"|(://)(?=[^\s/@]*\d)[\w~%.-]{20,}+:?@"
)
IN_HEADERS = re.compile(r"(?i)(authorization[\"']{0,2}\s?[:=]\s?[\"']?(?:bearer|basic|token)\s)[\w.~+/=-]{8,}")
TOO_DEEP = "[nested too deeply]"
SHORTEST = 6
"""Shorter values would blank out ordinary words."""


def allowed_environment(environment: Mapping[str, str], also: Iterable[str] = ()) -> dict[str, str]:
    """What agents get: an allow-list, and what the configuration names."""
    named = set(also)
    # By name first: a value of `os.environ` is decoded when it is asked for.
    return {name: environment[name] for name in environment if _is_allowed(name) or name in named}


@lru_cache(maxsize=1024)
def _is_allowed(name: str) -> bool:
    return ALLOWED.fullmatch(name) is not None


def new_token() -> str:
    """A random token of a shape that every `Redactor` removes."""
    return f"xitd_{secrets.token_urlsafe(32)}"


class Redactor:
    """Removes known secret values, everything shaped like a secret, control codes, and what cannot be encoded."""

    def __init__(self, values: Iterable[str]) -> None:
        # The longest first, of which others may be a part. As one pattern, they would take a hundred times the memory.
        self._known = sorted({form for value in values for form in _forms(value)}, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        # First, because programs colour parts of a secret.
        text = plain(encodable(text))
        if may_contain_key(text):
            text = without_private_keys(text)
        for value in self._known:
            text = text.replace(value, MASK)
        if "@" in text and "://" in text:
            text = IN_URLS.sub(lambda found: f"{found[1] or found[2]}{MASK}@", text)
        if "uthorization" in text:
            text = IN_HEADERS.sub(rf"\1{MASK}", text)
        return KEYS.sub(MASK, text)

    def everywhere(self, document: object, names: frozenset[str] = frozenset(), levels: int = MOST_LEVELS) -> object:
        """The same for every string and name of a decoded JSON document; what is nested too deeply is left out.

        The `names` that its schema knows stay, even if some secret is the same word.
        """
        match document:
            case str():
                return self(document)
            case dict() | list() | tuple() if not levels:
                return TOO_DEEP
            case dict():
                clean: dict[object, object] = {}
                for key, value in document.items():
                    is_name = not isinstance(key, str) or key in names
                    clean[_unused(key if is_name else self(key), clean)] = self.everywhere(value, names, levels - 1)
                return clean
            case list() | tuple():
                return [self.everywhere(value, names, levels - 1) for value in document]
            case _:
                return document

    def struct(self, value: S, only: frozenset[str] = frozenset()) -> S:
        """The same for every string of a Struct, or only in the fields of these names."""
        return value if self._finds_nothing(value) else self._clean_struct(value, only)

    def _finds_nothing(self, value: Struct) -> bool:
        """Whether a value is clean for sure: a look at its JSON takes far less time than one at each string."""
        try:
            text = msgspec.json.encode(value).decode()
        except UnicodeEncodeError:
            return False
        return "\\u00" not in text and self(text) == text

    def _clean_struct(self, value: S, only: frozenset[str]) -> S:
        changed = {
            name: self._clean(getattr(value, name), only, is_text=not only or name in only)
            for name in value.__struct_fields__
        }
        return msgspec.structs.replace(value, **changed)

    def _clean(self, value: object, only: frozenset[str], *, is_text: bool) -> object:
        match value:
            case Struct():
                return self._clean_struct(value, only)
            case dict():
                pairs = ((key, self._clean(one, only, is_text=is_text)) for key, one in value.items())
                return {self._clean(key, only, is_text=is_text): one for key, one in pairs}
            case list() | tuple() | frozenset():
                return type(value)(self._clean(one, only, is_text=is_text) for one in value)
            # An enumeration is a string too.
            case str() if is_text and type(value) is str:
                return self(value)
            case _:
                return value


def _unused(key: object, taken: Mapping[object, object]) -> object:
    """The key, or with a number if another one was the same secret."""
    numbered = (f"{key}-{number}" for number in range(2, len(taken) + 2))
    return key if key not in taken else next(name for name in numbered if name not in taken)


def _forms(value: str) -> Iterator[str]:
    """A secret as it may be written: in JSON, in a URL, and each of its lines."""
    for one in {value, value.replace("\\n", "\n"), *value.splitlines(), *value.split("\\n")}:
        text = plain(encodable(one)).strip()
        if len(text) >= SHORTEST and text.lower() not in known_secrets.COMMON_WORDS and text not in MASK:
            yield from (
                text,
                quote(text, safe=""),
                *(json.dumps(text, ensure_ascii=ascii_)[1:-1] for ascii_ in (True, False)),
            )


class LineRedactor:
    """Redacts a text that comes line by line, in which a private key has many lines."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._keys = PrivateKeys()
        self._begun = ""
        """A line that cannot be written yet."""

    def feed(self, text: str) -> list[str]:
        """The lines that can be written now."""
        is_idle = self._keys.is_idle and not self._begun
        if is_idle and not may_end_in_key(text) and not may_contain_key(text):
            return self._redact(text).split("\n")
        lines = lines_of(plain(encodable(text)) + "\n")
        *whole, self._begun = (self._begun + "".join(map(self._keys.feed, lines))).split("\n")
        return [self._redact(line) for line in whole]

    def flush(self) -> list[str]:
        """The lines that were held back; the text has ended."""
        rest, self._begun = self._begun + self._keys.flush(), ""
        return [self._redact(line) for line in rest.removesuffix("\n").split("\n")] if rest else []


def redactor(environment: Mapping[str, str], env_files: Sequence[Path] = (), more: Iterable[str] = ()) -> Redactor:
    """Removes the secrets of the environment and of `.env` files, and more values."""
    return Redactor([*known_secrets.of_environment(environment), *known_secrets.of_files(env_files), *more])
