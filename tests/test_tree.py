"""The shape of the source tree."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "iterdev"
FOLDERS = sorted({path.parent for path in SOURCE.rglob("*.py")})
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
MODULES = 18
"""A longer list of names is missing a level."""
READING = 1800
"""Lines of the reading path: an afternoon."""


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(SOURCE)))
def test_a_folder_can_be_taken_in_at_a_glance(folder: Path) -> None:
    modules = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]

    assert len(modules) <= MODULES


def test_the_reading_path_can_be_read_in_an_afternoon() -> None:
    section = ARCHITECTURE.split("## Reading path")[1].split("\n\nThen")[0]

    paths = [SOURCE / name for name in re.findall(r"`([\w/]+\.py)`", section)]

    assert [path.stem for path in paths] == [
        *("request", "events", "state", "fold", "schedule", "decide", "loop", "perform", "attempt"),
    ]
    assert sum(len(path.read_text().splitlines()) for path in paths) <= READING


def test_every_module_that_the_architecture_names_exists() -> None:
    named = re.findall(r"`(\w+(?:/\w+)+\.py)`", ARCHITECTURE)

    assert named
    assert [name for name in named if not (SOURCE / name).exists()] == []
