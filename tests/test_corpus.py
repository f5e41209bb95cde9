"""A sample of the corpus: real packages, each with a change that is harmless and one that breaks it.

`make corpus` tries all of them and writes docs/corpus.md.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
PACKAGES = tomllib.loads((TOP / "bench/corpus/packages.toml").read_text(encoding="utf-8"))["package"]
SAMPLE = [package["name"] for package in PACKAGES if package.get("sample")]


@pytest.mark.corpus
@pytest.mark.parametrize("name", SAMPLE)
def test_the_regression_in_a_real_package_is_named_and_its_harmless_change_passes(name: str) -> None:
    command = (sys.executable, TOP / "bench/corpus/run.py", "--only", name)

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_corpus_has_the_packages_and_ecosystems_that_it_promises() -> None:
    published = (TOP / "docs/corpus.md").read_text(encoding="utf-8")

    assert len(PACKAGES) >= 40
    assert len({package["ecosystem"].partition(",")[0] for package in PACKAGES}) >= 8
    assert len(SAMPLE) == 8
    assert all(f"| {package['name']} | {package['version']} |" in published for package in PACKAGES)
