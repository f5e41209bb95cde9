"""What installers print when they download packages, as they printed it, and what is said about it."""

import pytest

from iterdev.host.environments.downloads import Downloads, read, told

PIP = """\
Obtaining file:///slot/tree
Processing /wheels/itsdangerous-2.2.0-py3-none-any.whl
Collecting pytest
  Downloading pytest-9.2.0-py3-none-any.whl.metadata (7.6 kB)
  Downloading pytest-9.2.0-py3-none-any.whl (411 kB)
Collecting zope-interface
  Downloading https://index.example/files/zope_interface-8.7.tar.gz (1.2 MB)
Collecting pluggy<2,>=1.6 (from pytest)
  Using cached pluggy-1.7.0-py3-none-any.whl (27 kB)
Successfully installed itsdangerous-2.2.0 pluggy-1.7.0 pytest-9.2.0 zope-interface-8.7
"""
UV = """\
Using Python 3.11.7 environment at: /slot/python
Resolved 4 packages in 208ms
   Building calc @ file:///slot/tree
      Built calc @ file:///slot/tree
Prepared 2 packages in 7ms
Installed 4 packages in 11ms
 + calc==1.0 (from file:///slot/tree)
 + iniconfig==2.3.1
 + pluggy==1.7.0
 + pytest==9.2.0
"""
NPM = """\
npm http fetch GET 200 https://registry.example/@types%2fms 103ms (cache miss)
npm http cache ms@https://registry.example/ms/-/ms-2.1.3.tgz 0ms (cache hit)
npm http fetch GET 200 https://registry.example/@types/ms/-/ms-2.1.0.tgz 12ms (cache miss)
npm http fetch GET 200 https://registry.example/ms/-/ms-2.1.3.tgz 84ms (cache updated)
npm http fetch GET 200 https://registry.example/debug/-/debug-4.4.3.tgz 79ms (cache revalidated)

added 3 packages in 513ms
"""
PNPM = """\
Progress: resolved 1, reused 0, downloaded 0, added 0
Progress: resolved 3, reused 1, downloaded 2, added 3, done
"""


@pytest.mark.parametrize(
    ("installer", "printed", "expected"),
    [
        ("pip", PIP, Downloads(packages=("pytest@9.2.0", "zope_interface@8.7"), count=2, size=1_611_000)),
        ("uv", UV, Downloads(count=1)),
        ("npm", NPM, Downloads(packages=("@types/ms@2.1.0", "ms@2.1.3"), count=2)),
        ("pnpm", PNPM, Downloads(count=2)),
        ("yarn", "YN0000: Done in 1s", None),
        ("npm", "added 3 packages in 513ms", Downloads()),
    ],
)
def test_downloads_are_read_from_what_the_installer_printed(
    installer: str, printed: str, expected: Downloads | None
) -> None:
    assert read(printed, installer) == expected


@pytest.mark.parametrize(
    ("downloads", "expected"),
    [
        (None, "2 packages: a@1, b@2"),
        (Downloads(), "2 packages, none downloaded: a@1, b@2"),
        (
            Downloads(packages=("b@2",), count=1, size=411_000),
            "2 packages, 1 downloaded (411 kB): b@2; 1 was on this machine",
        ),
        (Downloads(count=2, size=1_611_000), "2 packages, 2 downloaded (1.6 MB): a@1, b@2"),
        (
            Downloads(packages=("a@1", "b@2", "c@3"), count=3),
            "2 packages, 3 downloaded with what builds them: a@1, b@2, c@3",
        ),
    ],
)
def test_what_is_said_names_packages_and_bytes_as_far_as_they_are_known(
    downloads: Downloads | None, expected: str
) -> None:
    assert told(["a@1", "b@2"], downloads) == expected


def test_only_the_first_packages_are_named() -> None:
    packages = [f"p{number}@1" for number in range(9)]

    text = told(packages, None)

    assert text == "9 packages: p0@1, p1@1, p2@1, p3@1, p4@1 and 4 more"
