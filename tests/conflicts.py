"""Two developers who change the same file side by side, for tests of conflicts at any level."""

from pathlib import Path

from tests.conftest import Repo
from tests.session_files import rows

# Every agent waits until all have begun, so that none has seen the work of another one.
TOGETHER_AT_WORK = """
echo start >> {home}/crowd
until test $(grep -c start {home}/crowd) -ge {number}; do sleep 0.02; done
"""

TOGETHER = "# One\n# Two\n"
TWO_ROWS = "id,description\nDEV-001,one\nDEV-002,two\n"


def collide(repo: Repo, **more: object) -> None:
    """Each of two developers writes README.md and a file of its own."""
    repo.behave(
        **{
            "DEV-001": {
                "write": {"README.md": "# One\n", "one.txt": "1\n"},
                "run": TOGETHER_AT_WORK.format(home=repo.home, number=2),
            },
            "DEV-002": {
                "write": {"README.md": "# Two\n", "two.txt": "2\n"},
                "run": TOGETHER_AT_WORK.format(home=repo.home, number=2),
            },
            **more,
        }
    )


def resolve(repo: Repo, *steps: object) -> None:
    """What the conflict task does when it is asked for the first time, for the second time, and so on."""
    names = ("DEV-001-fix-conflict", "DEV-002-fix-conflict")
    collide(repo, **{f"{name}#{number}": step for name in names for number, step in enumerate(steps, 1)})


def collided(folder: Path) -> tuple[str, str]:
    """The task whose work could not land, and its conflict task."""
    (fix,) = [name for name in rows(folder) if name.endswith("-fix-conflict")]
    return fix.removesuffix("-fix-conflict"), fix
