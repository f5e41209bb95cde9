"""The environment, the command line and the paths of an agent's program, as interface.md 3 describes them."""

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from iterdev.agents.contract import Assignment


def agent_environment(assignment: Assignment, attempt: int) -> dict[str, str]:
    return {
        **assignment.environment,
        "ITERDEV_TASK": assignment.task,
        "ITERDEV_ROLE": assignment.role,
        "ITERDEV_ATTEMPT": str(attempt),
        "ITERDEV_SESSION": assignment.session,
        "ITERDEV_SESSION_DIR": assignment.session_dir,
        "ITERDEV_ISSUES": ";".join(assignment.issues),
        "ITERDEV_RESULT": assignment.result_path,
        **(assignment.tools.variables(assignment.environment) if assignment.tools else {}),
    }


def resolve_command(command: Sequence[str], *, root: str, assignment: Assignment) -> list[str]:
    """Makes a command of the user's checkout work in a workspace.

    Files are those of the session's base, or else of the checkout, and never those of the workspace: one agent must not
    change the program of another.
    """
    program, *arguments = command
    folders = [folder for folder in (assignment.programs, root) if folder]
    found = find_program(program, folders, assignment.environment) or program
    return [found, *(_resolve_argument(argument, folders) for argument in arguments)]


def _resolve_argument(argument: str, folders: Sequence[str]) -> str:
    paths = (absolute(folder, argument) for folder in folders)
    return next((path for path in paths if is_file(path)), argument)


def find_program(program: str, folders: Sequence[str], variables: Mapping[str, str]) -> str | None:
    """Looks for a name on the PATH, as a shell does, and for anything else in the folders."""
    if os.sep not in program and shutil.which(program, path=variables.get("PATH")):
        return program
    paths = (absolute(folder, program) for folder in folders)
    return next((path for path in paths if is_file(path) and os.access(path, os.X_OK)), None)


def real(*parts: str) -> Path:
    return Path(os.path.realpath(Path(*parts)))


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is in the folder; a relative one starts there."""
    return real(folder, path).is_relative_to(real(folder))


def absolute(folder: str, path: str) -> str:
    return os.path.normpath(Path(folder).absolute() / path)


def is_file(path: str) -> bool:
    # An argument can be a whole text, which Path.is_file answers with an error because it is too long for a name.
    return os.path.isfile(path)  # noqa: PTH113
