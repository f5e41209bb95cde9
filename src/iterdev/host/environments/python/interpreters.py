"""The Python interpreters of this machine, and the environments that the user has made with them."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from iterdev.host.environments.python import installed
from iterdev.host.environments.python.installed import PythonEnvironment
from iterdev.host.environments.python.project import PythonProject
from iterdev.host.environments.workplace import CommandFailed, Workplace

NEWEST, OLDEST = 16, 8
"""Minor versions of Python 3 that are looked for on the PATH."""
_ABOUT = """\
import platform, sys, sysconfig
print(platform.python_version(), sys.prefix, sysconfig.get_path('purelib'), sep='\\n')
"""


class Interpreter(Struct, frozen=True):
    path: str
    version: str
    prefix: str
    packages: str
    """Its site-packages."""


def users_environments(checkout: Path | None, outer: Mapping[str, str]) -> Iterator[PythonEnvironment]:
    """The active environment, then those in the checkout, then conda's."""
    named = [Path(outer["VIRTUAL_ENV"])] if outer.get("VIRTUAL_ENV") else []
    named += [checkout / name for name in (".venv", "venv", "env")] if checkout else []
    for prefix in dict.fromkeys(path.resolve() for path in named):
        if found := installed.virtual_environment(prefix):
            yield found
    if (conda := outer.get("CONDA_PREFIX")) and (found := installed.installation(Path(conda))):
        yield found


async def system(work: Workplace) -> PythonEnvironment | None:
    """The Python on the PATH, with the packages that are installed in it itself."""
    found = await _interpreter(work, "python3")
    if found is None or not Path(found.packages).is_relative_to(found.prefix):
        return None
    prefix = Path(found.prefix)
    return installed.virtual_environment(prefix) or installed.installation(prefix, found.version)


async def fitting(work: Workplace, project: PythonProject) -> Interpreter | None:
    """The interpreter that the project asks for, or the first that it accepts."""
    users = [str(user.python) for user in users_environments(work.checkout, work.variables)]
    wanted = re.match(r"(?:cpython-)?(3\.\d+)", project.python)
    named = [f"python{wanted[1]}"] if wanted else []
    for name in (*named, *users, "python3", *(f"python3.{minor}" for minor in range(NEWEST, OLDEST - 1, -1))):
        found = await _interpreter(work, name)
        if found and installed.satisfies_python(found.version, project.requires_python):
            return found
    return None


async def _interpreter(work: Workplace, name: str) -> Interpreter | None:
    path = name if os.sep in name else work.program(name)
    if path is None:
        return None
    try:
        version, prefix, packages = (await work.call(path, "-I", "-c", _ABOUT)).splitlines()
    except (CommandFailed, ValueError):
        return None
    return Interpreter(path, version, prefix, packages)
