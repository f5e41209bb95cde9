"""Node packages: read from node_modules; npm's own semver library interprets ranges."""

from iterdev.host import untrusted_files
from iterdev.host.packages.shell import LINE_LIMIT, Found, Shell, document, last_line

SEMVER = """\
const [npm, version, range] = process.argv.slice(1);
const semver = require("module").createRequire(npm)("semver");
console.log(JSON.stringify({known: semver.validRange(range) !== null, fits: semver.satisfies(version, range)}));
"""


async def find_installed(name: str, version_range: str, shell: Shell) -> Found:
    try:
        package = untrusted_files.read_bytes(shell.tree / "node_modules" / name / "package.json")
    except OSError:
        return Found(reason="it is not in node_modules")
    version = str(document(package).get("version", ""))[:LINE_LIMIT]
    compared = await _compare(version, version_range, shell)
    if not compared.get("known"):
        return Found(version=version, reason=f'"{version_range}" is not a range of npm, such as "^1.2.0"')
    return Found(version=version, fits=bool(compared.get("fits")))


async def newest(name: str, version_range: str, shell: Shell) -> tuple[str, bool] | None:
    viewed = await shell.run("npm", "view", "--silent", "--", name, "version")
    version = last_line(viewed.stdout)
    if viewed.code or not version:
        return None
    return version, bool((await _compare(version, version_range, shell)).get("fits"))


async def _compare(version: str, version_range: str, shell: Shell) -> dict[str, object]:
    compared = await shell.run("node", "-e", SEMVER, str(shell.path_of("npm")), version, version_range)
    return document(compared.stdout)
