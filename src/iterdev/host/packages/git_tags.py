"""Git repositories as packages: named by their address; a range is a tag, branch or commit, or a pattern of tags."""

from iterdev.host.packages.shell import Found, Shell, last_line


async def find_installed(name: str, version_range: str, shell: Shell) -> Found:
    everything = await shell.run("git", "ls-remote", "--", name)
    if everything.code:
        return Found(reason=_reason(everything.stderr))
    refs = _refs(everything.stdout)
    if not version_range:
        return Found(version=refs.get("HEAD", ""), fits=True)
    if fitting := await _named(name, shell, "--tags", "--heads", pattern=version_range):
        return Found(version=fitting[0], fits=True)
    if version_range in refs.values():
        return Found(version=version_range, fits=True)
    tags = await _named(name, shell, "--tags")
    return Found(version=tags[0] if tags else refs.get("HEAD", ""), reason=f'nothing there fits "{version_range}"')


async def newest(name: str, version_range: str, shell: Shell) -> tuple[str, bool] | None:
    """The highest tag; None if the range names no tags."""
    tags = await _named(name, shell, "--tags")
    fitting = await _named(name, shell, "--tags", "--heads", pattern=version_range)
    named = [tag for tag in fitting if tag in tags]
    return (tags[0], tags[0] in fitting) if tags and named else None


async def _named(name: str, shell: Shell, *kinds: str, pattern: str = "") -> list[str]:
    """The tags or branches that match the pattern, the highest version first."""
    listed = await shell.run(
        "git", "ls-remote", *kinds, "--refs", "--sort=-version:refname", "--", name, pattern or "*"
    )
    return [ref.removeprefix("refs/tags/").removeprefix("refs/heads/") for ref in _refs(listed.stdout)]


def _reason(output: bytes) -> str:
    """The line of git's message before its advice."""
    lines = output.decode("utf-8", "replace").splitlines()
    return next((last_line(line.encode()) for line in lines if line.startswith("fatal: ")), last_line(output))


def _refs(listed: bytes) -> dict[str, str]:
    lines = (line.split("\t", 1) for line in listed.decode("utf-8", "replace").splitlines() if "\t" in line)
    return {ref: commit for commit, ref in lines}
