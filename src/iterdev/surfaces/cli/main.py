"""The one place where errors become messages and exit codes."""

import os
from pathlib import Path

import click

from iterdev.core.errors import HostError, IterdevError, NeedsConfirmation, UserError
from iterdev.surfaces.cli.app import app
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output.console import make_printable, print_error


def run(arguments: list[str], executor: object = None) -> int:
    """Runs a command; an `executor` (see `app.resume`) runs the attempts of a session elsewhere."""
    make_printable()
    try:
        code = app.main(arguments, prog_name="iterdev", standalone_mode=False, obj=executor)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        return _usage_error(error)
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.interrupted
    except IterdevError as error:
        print_error(IterdevError(_without_secrets(error.message), hint=_without_secrets(error.hint or "")))
        return _exit_code(error)
    except OSError as error:
        text = f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")
        print_error(HostError(_without_secrets(text), hint="check its permissions and free space"))
        return ExitCode.unable
    except Exception as error:  # noqa: BLE001 - the boundary: anything else is a defect, and is kept for a report
        return _defect(error)
    except BaseExceptionGroup as group:
        # An interrupt that came while several things were being ended.
        if not group.subgroup(KeyboardInterrupt):
            raise
        return ExitCode.interrupted
    return code if isinstance(code, int) else ExitCode.finished


def _without_secrets(text: str) -> str:
    from iterdev.app.sessions import without_secrets  # noqa: PLC0415 - only errors need it

    try:
        return without_secrets(text, Path.cwd()) if text else text
    except FileNotFoundError:
        return without_secrets(text, Path("/"))


def _exit_code(error: IterdevError) -> ExitCode:
    match error:
        case UserError():
            return ExitCode.wrong
        case NeedsConfirmation():
            return ExitCode.unfinished
        case _:
            return ExitCode.unable


def _usage_error(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return ExitCode.wrong
    context = error.ctx if isinstance(error, click.UsageError) else None
    help_command = f"{context.command_path} --help" if context else "iterdev --help"
    print_error(UserError(error.format_message().replace("\n", " "), hint=help_command))
    return ExitCode.wrong


def _defect(error: Exception) -> int:
    import traceback  # noqa: PLC0415 - only defects need them
    from tempfile import mkstemp  # noqa: PLC0415

    descriptor, path = mkstemp(prefix="iterdev-defect-", suffix=".txt", text=True)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(_without_secrets("".join(traceback.format_exception(error))))
    message = _without_secrets(f"this is a defect of iterdev: {type(error).__name__}: {error}")
    print_error(IterdevError(message, hint=f"please report it with {path}"))
    return ExitCode.defect
