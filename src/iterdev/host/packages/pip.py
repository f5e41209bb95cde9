"""Python packages: looked up by the project's own interpreter; ranges as in PEP 440."""

import os
import re
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from iterdev.host.packages.shell import Found, NoTool, Shell, last_line

ENVIRONMENTS = (".venv", "venv", "env")
VERSION = """\
import importlib.metadata as metadata, sys
try:
    print(metadata.version(sys.argv[1]))
except metadata.PackageNotFoundError:
    sys.exit(3)
"""


async def find_installed(name: str, version_range: str, shell: Shell) -> Found:
    asked = await shell.run(_interpreter(shell.tree), "-c", VERSION, _without_extras(name))
    version = last_line(asked.stdout)
    if asked.code or not version:
        return Found(reason="" if asked.code == 3 else last_line(asked.stderr))
    try:
        return Found(version=version, fits=_fits(version, version_range))
    except InvalidSpecifier:
        return Found(version=version, reason=f'"{version_range}" is not a version specifier, such as ">=2,<3"')
    except ValueError:  # also numbers of more digits than Python reads
        return Found(version=version, reason=f'"{version}" is not a version that can be compared')


async def newest(name: str, version_range: str, shell: Shell) -> tuple[str, bool] | None:
    name, interpreter = _without_extras(name), _interpreter(shell.tree)
    version = await _listed_by_pip(name, interpreter, shell) or await _resolved_by_uv(name, interpreter, shell)
    try:
        return (version, _fits(version, version_range)) if version else None
    except ValueError:
        return None


async def _listed_by_pip(name: str, interpreter: str, shell: Shell) -> str:
    """The newest release in the indexes of the project's own pip, or else of the one on the path."""
    for python in dict.fromkeys((interpreter, "python3")):
        with suppress(NoTool):
            listed = await shell.run(python, "-m", "pip", "--disable-pip-version-check", "index", "versions", name)
            found = re.match(r"\S+ \(([^()\s]+)\)", listed.stdout.decode("utf-8", "replace"))
            if found and not listed.code:
                return found[1]
    return ""


async def _resolved_by_uv(name: str, interpreter: str, shell: Shell) -> str:
    """The release that uv would install now; environments that uv made have no pip."""
    options = ("--quiet", "--no-deps", "--no-header", "--no-annotate", "--python", interpreter)
    with suppress(NoTool), TemporaryDirectory(dir=shell.temp) as folder:
        wanted = Path(folder) / "requirements.in"
        shell.write(wanted, f"{name}\n")
        resolved = await shell.run("uv", "pip", "compile", *options, str(wanted))
        return "" if resolved.code else last_line(resolved.stdout).partition("==")[2]
    return ""


def _without_extras(name: str) -> str:
    return name.partition("[")[0]


def _fits(version: str, version_range: str) -> bool:
    # An installed pre-release counts too, as for pip itself.
    return SpecifierSet("" if version_range.strip() == "*" else version_range).contains(version, prereleases=True)


def _interpreter(tree: Path) -> str:
    own = (tree / folder / "bin" / "python" for folder in ENVIRONMENTS)
    return next((str(path) for path in own if os.path.lexists(path)), "python3")
