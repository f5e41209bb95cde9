"""iterdev agents."""

import json
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from iterdev.agents import registry
from iterdev.core.settings import KNOWN_AGENTS
from iterdev.engine.repository import Repository


def agents(*, as_json: bool) -> int:
    repository = Repository(Path.cwd())
    configured = repository.settings.agents
    names = [*configured, *(name for name in KNOWN_AGENTS if name not in configured)]
    rows = [_row(name, repository) for name in names]
    if as_json:
        click.echo(json.dumps({"agents": msgspec.to_builtins(rows)}, ensure_ascii=False))
        return 0
    for row in rows:
        click.echo(f"{row.name:<12} {row.kind:<9} {row.version:<10} {_standing(row)}")
    return 0


class Row(Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    installed: bool
    usable: bool
    version: str
    note: str
    problem: str
    hint: str


def _row(name: str, repository: Repository) -> Row:
    configured = repository.settings.agents
    probe = registry.make(name, configured, repository.top).probe()
    return Row(
        name=name,
        kind=registry.kind(name, configured),
        installed=probe.installed,
        usable=probe.installed and not probe.problem,
        version=probe.version,
        note=probe.note,
        problem=probe.problem,
        hint=probe.hint,
    )


def _standing(row: Row) -> str:
    if row.usable:
        return f"usable; {row.note}" if row.note else "usable"
    return f"not usable: {row.problem}" + (f"; hint: {row.hint}" if row.hint else "")
