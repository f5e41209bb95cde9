"""The one place where errors become words and exit codes."""

import os
import sys
import traceback
from tempfile import mkstemp

import click

from iterdev.core.errors import HostError, IterdevError, UserError
from iterdev.surfaces.cli.app import app

FINISHED, UNFINISHED, WRONG, DEFECT, UNABLE, WAITING, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


def run(arguments: list[str]) -> int:
    try:
        code = app.main(arguments, prog_name="iterdev", standalone_mode=False)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        return _refuse(error)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away, as `| head` does.
        sys.stderr.close()
        return FINISHED
    except IterdevError as error:
        tell(error)
        return WRONG if isinstance(error, UserError) else UNABLE
    except OSError as error:
        tell(HostError(f"{error.strerror or error}: {error.filename or ''}".rstrip(": "), hint="iterdev doctor"))
        return UNABLE
    except Exception as error:  # noqa: BLE001 - the boundary: anything else is a defect, and is kept for a report
        return _admit(error)
    return code if isinstance(code, int) else FINISHED


def tell(error: IterdevError) -> None:
    sys.stderr.write(f"iterdev: {error.message}\n")
    if error.hint:
        sys.stderr.write(f"hint: {error.hint}\n")


def _refuse(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return WRONG
    context = error.ctx if isinstance(error, click.UsageError) else None
    help_command = f"{context.command_path} --help" if context else "iterdev --help"
    tell(UserError(error.format_message().replace("\n", " "), hint=help_command))
    return WRONG


def _admit(error: Exception) -> int:
    descriptor, path = mkstemp(prefix="iterdev-defect-", suffix=".txt", text=True)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(traceback.format_exception(error))
    sys.stderr.write(f"iterdev: this is a defect of iterdev: {type(error).__name__}: {error}\n")
    sys.stderr.write(f"hint: please report it with {path}\n")
    return DEFECT
