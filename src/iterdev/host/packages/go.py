"""Go modules: versions are those that go selects; a range is one of go's version queries.

A bare version means "this one or newer", as in go.mod.
"""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from iterdev.host.packages.shell import Found, Shell, document, last_line

VERSION = re.compile(r"v[\w.+-]{1,200}", re.ASCII)
"""It becomes the name of a file."""
ISOLATED = {"GOFLAGS": "-mod=mod", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOWORK": "off"}


async def find_installed(name: str, version_range: str, shell: Shell) -> Found:
    version = await _selected(name, shell)
    if not version:
        return Found(reason="it is not in go.mod")
    if not VERSION.fullmatch(version):
        return Found(version=version, reason=f'"{version}" is not a version')
    return Found(version=version, fits=await _fits(name, version, version_range, shell))


async def newest(name: str, version_range: str, shell: Shell) -> tuple[str, bool] | None:
    """The newest release; most ranges of go have no upper bound and allow it."""
    listed = await shell.run("go", "list", "-m", "-f", "{{.Version}}", f"{name}@latest", GOTOOLCHAIN="local")
    version = last_line(listed.stdout)
    known = VERSION.fullmatch(version) and not listed.code
    return (version, await _fits(name, version, version_range, shell)) if known else None


async def _selected(name: str, shell: Shell) -> str:
    """The version in the build list, or in go.mod if that list needs modules that are not downloaded."""
    listed = await shell.run("go", "list", "-m", "-f", "{{.Version}}", name, GOPROXY="off", GOTOOLCHAIN="local")
    if not listed.code:
        return last_line(listed.stdout)
    edited = await shell.run("go", "mod", "edit", "-json", GOTOOLCHAIN="local")
    required = document(edited.stdout).get("Require")
    modules = [one for one in required if isinstance(one, dict)] if isinstance(required, list) else []
    return next((str(module.get("Version", "")) for module in modules if module.get("Path") == name), "")


async def _fits(name: str, version: str, version_range: str, shell: Shell) -> bool:
    """Whether go's query selects the version from a proxy on disk that has no other."""
    query = version_range.strip() or "latest"
    if re.fullmatch(r"v\d+\.\d+\.\d+.*", query):
        query = f">={query}"
    with TemporaryDirectory(dir=shell.temp) as folder:
        proxy, user = Path(folder) / "proxy", Path(folder) / "user"
        # Proxies write "!" and a small letter for a capital.
        escaped = re.sub("[A-Z]", lambda letter: f"!{letter[0].lower()}", name)
        _publish(shell, proxy / escaped / "@v", name, version)
        shell.write(user / "go.mod", "module user.invalid\n\ngo 1.20\n")
        env = ISOLATED | {"GOPROXY": proxy.as_uri(), "GOMODCACHE": str(Path(folder) / "cache")}
        words = ("-modcacherw", "-m", "-f", "{{.Version}}", f"{name}@{query}")
        selected = await shell.run("go", "list", *words, cwd=user, **env)
    return not selected.code and last_line(selected.stdout) == version


def _publish(shell: Shell, folder: Path, name: str, version: str) -> None:
    shell.write(folder / "list", f"{version}\n")
    shell.write(folder / f"{version}.info", json.dumps({"Version": version}))
    shell.write(folder / f"{version}.mod", f"module {name}\n")
