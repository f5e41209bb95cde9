"""Tries iterdev on real packages, prints how it did, and writes docs/corpus.md.

python bench/corpus/run.py                     all of them
python bench/corpus/run.py --again NAME ...    some of them; for the others the page keeps what their last trial showed
python bench/corpus/run.py --only NAME ...     some of them; the page stays as it is
python bench/corpus/run.py --by-hand NAME ...  their tests as by hand, without and with the change that breaks them

Ends with 1 if a change that breaks its package passed, or if less than 95 % of the packages are right.
"""

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
        case []:
            _finish([_tried(package) for package in listed()])
        case ["--again", *names]:
            for package in _chosen(names):
                _tried(package)
            _finish([one for package in listed() if (one := _kept(package))])
        case ["--only", *names]:
            _judge([_tried(package) for package in _chosen(names)])
        case ["--by-hand", *names]:
            for package in _chosen(names):
                with _scratch() as scratch:
                    print(by_hand.described(package, CACHE, scratch), flush=True)
        case _:
            raise SystemExit(__doc__)


def _finish(trials: list[trial.Trial]) -> None:
    if len(trials) == len(listed()):
        (TOP / "docs" / "corpus.md").write_text(page.page(trials), encoding="utf-8")
    _judge(trials)


def _judge(trials: list[trial.Trial]) -> None:
    right = sum(one.is_right for one in trials)
    sys.exit(right < RIGHT * len(trials) or any(one.is_false_pass for one in trials))


@contextmanager
def _scratch() -> Iterator[Path]:
    """Outside of this repository: some tools read the settings of all folders above."""
    with tempfile.TemporaryDirectory(prefix="corpus-", ignore_cleanup_errors=True) as scratch:
        yield Path(scratch)


def _chosen(names: list[str]) -> list[Package]:
    packages = {package.name: package for package in listed()}
    if unknown := [name for name in names if name not in packages]:
        raise SystemExit(f'no package "{unknown[0]}" in packages.toml\n{__doc__}')
    return [packages[name] for name in names or packages]


def _tried(package: Package) -> trial.Trial:
    with _scratch() as scratch:
        one = trial.tried(package, CACHE, scratch)
    (RESULTS / f"{package.name}.json").write_bytes(msgspec.json.encode(one))
    print(page.row(one), *page.complaints(one), sep="\n    ", flush=True)
    return one


def _kept(package: Package) -> trial.Trial | None:
    """What the last trial showed, unless what was tried has changed since then; how it is done by hand may have."""
    file = RESULTS / f"{package.name}.json"
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
