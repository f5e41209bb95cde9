"""iterdev clean."""

import click
import msgspec

from iterdev.app.branches import clean as app_clean
from iterdev.app.branches.clean import Cleaning
from iterdev.core.errors import UserError
from iterdev.core.views.previews import CleanItem
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_document, print_text

UNITS = ("bytes", "KiB", "MiB", "GiB")


@click.command(help="Remove branches, refs and worktrees that are not needed, of SESSION or of all")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed")
@click.option("--undo", is_flag=True, help="Restore the branches and refs that were removed in the last 30 days")
@arguments.session_name
@arguments.as_json
def clean(*, session: str | None, dry_run: bool, undo: bool, as_json: bool) -> None:
    if dry_run and undo:
        raise UserError("--dry-run and --undo exclude each other", hint="iterdev clean --undo")
    repository = arguments.current_repository()
    only = repository.find(session) if session else None
    if undo:
        restored = app_clean.undo(repository, only)
        if as_json:
            print_document(restored)
            return
        for name in restored.refs:
            print_text(f"restored {name}")
        for name in restored.taken:
            print_text(f"kept {name}: it exists again")
        return
    done = app_clean.clean(repository, only, dry_run=dry_run)
    if as_json:
        print_document({"dry_run": dry_run, "freed": done.freed, **msgspec.to_builtins(done)})
        return
    undone_by = f"iterdev clean --undo {only}" if only else "iterdev clean --undo"
    print_text("\n".join(_lines(done, undone_by, dry_run=dry_run)))


def _lines(done: Cleaning, undone_by: str, *, dry_run: bool) -> list[str]:
    verb = "would remove" if dry_run else "removed"
    lines = [f"{verb} {_named(item)}" for item in done.removed]
    lines += [f"kept {_named(item)}" for item in done.kept]
    if not done.removed:
        return [*lines, "Nothing to remove"]
    lines.append(f"{'Would free' if dry_run else 'Freed'} {_amount(done.freed)}")
    if not dry_run and any(item.kind == "ref" for item in done.removed):
        lines.append(f"Branches and refs can be restored for 30 days with: {undone_by}")
    return lines


def _named(item: CleanItem) -> str:
    size = f" ({_amount(item.size)})" if item.size else ""
    return f"{item.kind} {item.name}{size}: {item.why}"


def _amount(size: float) -> str:
    for unit in UNITS[:-1]:
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} {UNITS[-1]}"
