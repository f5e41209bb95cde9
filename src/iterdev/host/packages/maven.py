"""Java artifacts, named group:artifact: read from the local repository; Maven's own classes interpret ranges."""

from pathlib import Path
from tempfile import TemporaryDirectory

from iterdev.host.packages.shell import Found, Shell, last_line

CHECKER = """\
import org.apache.maven.artifact.versioning.*;

public class Checker {
    public static void main(String[] words) throws Exception {
        VersionRange range = VersionRange.createFromVersionSpec(words[0]);
        ArtifactVersion wanted = range.getRecommendedVersion();
        for (int place = 1; place < words.length; place++) {
            ArtifactVersion version = new DefaultArtifactVersion(words[place]);
            boolean fits = wanted == null ? range.containsVersion(version) : wanted.compareTo(version) == 0;
            if (fits) System.out.println(words[place]);
        }
    }
}
"""


async def find_installed(name: str, version_range: str, shell: Shell) -> Found:
    versions = _local(name, shell)
    if not versions:
        return Found(reason="it is not in the local repository")
    if not version_range:
        return Found(version=versions[-1], fits=True)
    with TemporaryDirectory(dir=shell.temp) as folder:
        source = Path(folder) / "Checker.java"
        shell.write(source, CHECKER)
        classes = shell.path_of("mvn").parents[1] / "lib" / "*"
        checked = await shell.run("java", "-cp", str(classes), str(source), version_range, *versions)
    if b"InvalidVersionSpecification" in checked.stderr:
        return Found(version=versions[-1], reason=f'"{version_range}" is not a range of Maven, such as "[1.2,2.0)"')
    if checked.code:
        return Found(version=versions[-1], reason=last_line(checked.stderr))
    fitting = last_line(checked.stdout)
    return Found(version=fitting or versions[-1], fits=bool(fitting))


async def newest(_name: str, _version_range: str, _shell: Shell) -> tuple[str, bool] | None:
    """Maven has no command that lists the releases of an artifact."""
    return None


def _local(name: str, shell: Shell) -> list[str]:
    group, _, artifact = name.partition(":")
    folder = Path(shell.env.get("HOME", "")) / ".m2" / "repository" / Path(*group.split(".")) / artifact
    return sorted(path.parent.name for path in folder.glob("*/*.pom"))
