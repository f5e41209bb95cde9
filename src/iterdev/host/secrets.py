"""What an agent may see of the environment, and what must not be written down."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ALLOWED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TERM|COLORTERM|NO_COLOR|CI|XDG_\w+"
    r"|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|(HTTPS?|NO|ALL|FTP)_PROXY|(https?|no|all|ftp)_proxy|PYENV_\w+|NVM_\w+|VIRTUAL_ENV|GOPATH|GOROOT|GOCACHE"
    r"|CARGO_HOME|RUSTUP_HOME|JAVA_HOME|PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS)"
)
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE|AUTH(?!OR)|COOKIE|SESSION_ID$|DSN$", re.IGNORECASE)
SHAPES = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----"
    r"|\bsk-(?:ant-|proj-)?[\w-]{20,}"
    r"|\bgh[pousr]_\w{30,}|\bgithub_pat_\w{40,}|\bglpat-[\w-]{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{35}|\bxox[abprs]-[\w-]{10,}"
    r"|\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    re.DOTALL,
)
MASK = "[secret]"
SHORTEST = 6
"""Shorter values would blank out ordinary words."""


def allowed_environment(environment: Mapping[str, str], also: Iterable[str] = ()) -> dict[str, str]:
    """What agents get: an allow-list, and what the configuration names."""
    named = set(also)
    return {name: value for name, value in environment.items() if ALLOWED.fullmatch(name) or name in named}


class Redactor:
    """Removes known secret values, and everything shaped like a secret, from text."""

    def __init__(self, values: Iterable[str]) -> None:
        known = sorted({value for value in values if len(value) >= SHORTEST}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def __call__(self, text: str) -> str:
        if self._known:
            text = self._known.sub(MASK, text)
        return SHAPES.sub(MASK, text)


def redactor(environment: Mapping[str, str], env_files: Sequence[Path] = ()) -> Redactor:
    values = [value for name, value in environment.items() if SECRET_NAME.search(name)]
    for file in env_files:
        values += _values_of(file)
    return Redactor(values)


def _values_of(file: Path) -> list[str]:
    """The values of a `.env` file whose names sound secret."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    pairs = (line.removeprefix("export ").split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    return [value.strip().strip("\"'") for name, value in pairs if SECRET_NAME.search(name)]
