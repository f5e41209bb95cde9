"""Tries iterdev on real packages, prints how it did, and writes docs/corpus.md.

python bench/corpus/run.py                     all of them, without and with the sandbox
python bench/corpus/run.py --again NAME ...    some of them; for the others the page keeps what their last trial showed
python bench/corpus/run.py --sandbox NAME ...  the same with the sandbox alone; without names, all of them
python bench/corpus/run.py --only NAME ...     some of them without the sandbox; the page stays as it is
python bench/corpus/run.py --by-hand NAME ...  their tests as by hand, without and with the change that breaks them

Ends with 1 if a change that breaks its package passed, or if less than 95 % of the packages are right.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import by_hand
import msgspec
import trial
from packages import Package, listed

import page

TOP = Path(__file__).resolve().parents[2]
CACHE = TOP / ".corpus"
RESULTS = CACHE / "results"
RIGHT = 0.95
"""The part of the packages that has to be right; the rest has to say why nothing could be verified."""


def main(words: list[str]) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    match words:
        case [] | ["--again", *_]:
            for package in _chosen(words[1:]):
                for sandbox in (False, True):
                    _tried(package, sandbox=sandbox)
            _finish()
        case ["--sandbox", *names]:
            for package in _chosen(names):
                _tried(package, sandbox=True)
            _finish()
        case ["--only", *names]:
            _judge([_tried(package) for package in _chosen(names)])
        case ["--by-hand", *names]:
            for package in _chosen(names):
                with _scratch() as scratch:
                    print(by_hand.described(package, CACHE, scratch), flush=True)
        case _:
            raise SystemExit(__doc__)


def _finish() -> None:
    """Writes the page, if every package was tried in both ways."""
    without, within = ([one for package in listed() if (one := _kept(package, sandbox=way))] for way in (False, True))
    if len(without) == len(within) == len(listed()):
        (TOP / "docs" / "corpus.md").write_text(page.page(without, within), encoding="utf-8")
    _judge([*without, *within])


def _judge(trials: list[trial.Trial]) -> None:
    right = sum(one.is_right for one in trials)
    sys.exit(right < RIGHT * len(trials) or any(one.is_false_pass for one in trials))


@contextmanager
def _scratch(folder: Path | None = None) -> Iterator[Path]:
    """Outside of this repository: some tools read the settings of all folders above."""
    with tempfile.TemporaryDirectory(prefix="corpus-", dir=folder, ignore_cleanup_errors=True) as scratch:
        yield Path(scratch)


def _chosen(names: list[str]) -> list[Package]:
    packages = {package.name: package for package in listed()}
    if unknown := [name for name in names if name not in packages]:
        raise SystemExit(f'no package "{unknown[0]}" in packages.toml\n{__doc__}')
    return [packages[name] for name in names or packages]


def _tried(package: Package, *, sandbox: bool = False) -> trial.Trial:
    # The sandbox hides the system's temporary folders, and with them settings that a user has elsewhere.
    with _scratch(Path(os.environ.get("TMPDIR") or TOP.parent) if sandbox else None) as scratch:
        one = trial.tried(package, CACHE, scratch, sandbox=sandbox)
    _result(package, sandbox=sandbox).write_bytes(msgspec.json.encode(one))
    print(page.row(one), *page.complaints(one), sep="\n    ", flush=True)
    return one


def _result(package: Package, *, sandbox: bool) -> Path:
    return RESULTS / f"{package.name}{'-sandbox' if sandbox else ''}.json"


def _kept(package: Package, *, sandbox: bool) -> trial.Trial | None:
    """What the last trial showed, unless what was tried has changed since then; how it is done by hand may have."""
    file = _result(package, sandbox=sandbox)
    if not file.exists():
        return None
    one = msgspec.json.decode(file.read_bytes(), type=trial.Trial)
    return msgspec.structs.replace(one, package=package) if _tries(one.package) == _tries(package) else None


def _tries(package: Package) -> Package:
    """Without what has no influence on a trial."""
    setup = package.setup if package.active else ""
    return msgspec.structs.replace(package, tests=0, test="", setup=setup, ecosystem="", sample=False)


if __name__ == "__main__":
    main(sys.argv[1:])
