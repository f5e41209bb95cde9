"""Python packages: looked up by the project's own interpreter; ranges as in PEP 440."""

from pathlib import Path

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from iterdev.host.packages.shell import Found, Shell, last_line

ENVIRONMENTS = (".venv", "venv", "env")
VERSION = """\
import importlib.metadata as metadata, sys
try:
    print(metadata.version(sys.argv[1]))
except metadata.PackageNotFoundError:
    sys.exit(3)
"""


async def find_installed(name: str, version_range: str, shell: Shell) -> Found:
    asked = await shell.run(_interpreter(shell.tree), "-c", VERSION, name)
    version = last_line(asked.stdout)
    if asked.code or not version:
        return Found(reason="" if asked.code == 3 else last_line(asked.stderr))
    try:
        return Found(version=version, fits=_fits(version, version_range))
    except InvalidSpecifier:
        return Found(version=version, reason=f'"{version_range}" is not a version specifier, such as ">=2,<3"')


async def newest(name: str, version_range: str, shell: Shell) -> tuple[str, bool] | None:
    listed = await shell.run(_interpreter(shell.tree), "-m", "pip", "index", "versions", "--quiet", name)
    _, _, version = listed.stdout.decode("utf-8", "replace").partition("(")
    version = version.partition(")")[0]
    return (version, _fits(version, version_range)) if version and not listed.code else None


def _fits(version: str, version_range: str) -> bool:
    # An installed pre-release counts too, as for pip itself.
    return SpecifierSet("" if version_range.strip() == "*" else version_range).contains(version, prereleases=True)


def _interpreter(tree: Path) -> str:
    own = (tree / folder / "bin" / "python" for folder in ENVIRONMENTS)
    return next((str(path) for path in own if path.exists()), "python3")
