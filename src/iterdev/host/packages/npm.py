"""Node packages: looked up in node_modules; ranges are read by the semver library that npm itself brings along."""

from iterdev.host.packages.shell import Found, Shell, document, last_line

JUDGE = """\
const [npm, version, range] = process.argv.slice(1);
const semver = require("module").createRequire(npm)("semver");
console.log(JSON.stringify({known: semver.validRange(range) !== null, fits: semver.satisfies(version, range)}));
"""


async def look(name: str, version_range: str, shell: Shell) -> Found:
    try:
        package = (shell.tree / "node_modules" / name / "package.json").read_bytes()
    except OSError:
        return Found(reason="it is not in node_modules")
    version = str(document(package).get("version", ""))
    judged = await _judge(version, version_range, shell)
    if not judged.get("known"):
        return Found(version=version, reason=f'"{version_range}" is not a range of npm, such as "^1.2.0"')
    return Found(version=version, fits=bool(judged["fits"]))


async def newest(name: str, version_range: str, shell: Shell) -> tuple[str, bool] | None:
    viewed = await shell.run("npm", "view", "--silent", "--", name, "version")
    version = last_line(viewed.stdout)
    if viewed.code or not version:
        return None
    return version, bool((await _judge(version, version_range, shell)).get("fits"))


async def _judge(version: str, version_range: str, shell: Shell) -> dict[str, object]:
    judged = await shell.run("node", "-e", JUDGE, str(shell.path_of("npm")), version, version_range)
    return document(judged.stdout)
