"""Go modules: their versions are those that go selects; a range is one of go's own version queries.

A bare version is what go.mod writes for "this one or newer".
"""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from iterdev.host.packages.shell import Found, Shell, document, last_line

ALONE = {"GOFLAGS": "-mod=mod", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOWORK": "off"}


async def look(name: str, version_range: str, shell: Shell) -> Found:
    version = await _selected(name, shell)
    if not version:
        return Found(reason="it is not in go.mod")
    return Found(version=version, fits=await _fits(name, version, version_range, shell))


async def newest(name: str, version_range: str, shell: Shell) -> tuple[str, bool] | None:
    """The newest release; go's ranges are open above, so only one that is closed does not allow it."""
    listed = await shell.run("go", "list", "-m", "-f", "{{.Version}}", f"{name}@latest", GOTOOLCHAIN="local")
    version = last_line(listed.stdout)
    return (version, await _fits(name, version, version_range, shell)) if version and not listed.code else None


async def _selected(name: str, shell: Shell) -> str:
    """The version in the build list, or in go.mod where the modules are not at hand to make that list."""
    listed = await shell.run("go", "list", "-m", "-f", "{{.Version}}", name, GOPROXY="off", GOTOOLCHAIN="local")
    if not listed.code:
        return last_line(listed.stdout)
    edited = await shell.run("go", "mod", "edit", "-json", GOTOOLCHAIN="local")
    required = document(edited.stdout).get("Require")
    modules = required if isinstance(required, list) else []
    return next((str(module["Version"]) for module in modules if module.get("Path") == name), "")


async def _fits(name: str, version: str, version_range: str, shell: Shell) -> bool:
    """Whether go's query picks the version from a proxy on disk that has only this one."""
    query = version_range.strip() or "latest"
    if re.fullmatch(r"v\d+\.\d+\.\d+.*", query):
        query = f">={query}"
    with TemporaryDirectory(dir=shell.temp) as folder:
        proxy, asking = Path(folder) / "proxy", Path(folder) / "asking"
        _publish(proxy / _escaped(name) / "@v", name, version)
        asking.mkdir()
        (asking / "go.mod").write_text("module asking.invalid\n\ngo 1.20\n", encoding="utf-8")
        env = ALONE | {"GOPROXY": proxy.as_uri(), "GOMODCACHE": str(Path(folder) / "cache")}
        words = ("-modcacherw", "-m", "-f", "{{.Version}}", f"{name}@{query}")
        picked = await shell.run("go", "list", *words, cwd=asking, **env)
    return not picked.code and last_line(picked.stdout) == version


def _publish(folder: Path, name: str, version: str) -> None:
    folder.mkdir(parents=True)
    (folder / "list").write_text(f"{version}\n", encoding="utf-8")
    (folder / f"{version}.info").write_text(json.dumps({"Version": version}), encoding="utf-8")
    (folder / f"{version}.mod").write_text(f"module {name}\n", encoding="utf-8")


def _escaped(name: str) -> str:
    """A module's path as proxies spell it: capitals become small letters behind an exclamation mark."""
    return re.sub("[A-Z]", lambda letter: f"!{letter[0].lower()}", name)
