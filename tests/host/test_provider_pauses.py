"""Pauses of providers, told from run to run."""

from pathlib import Path

import pytest

from iterdev.core.limits.providers import ProviderPaused
from iterdev.host.provider_pauses import Pauses

ANTHROPIC, OPENAI = ProviderPaused("anthropic", 1050.5, "429"), ProviderPaused("open/ai é", 1020, "slow down")


def test_there_are_no_pauses_at_first(tmp_path: Path) -> None:
    assert Pauses(tmp_path / "state").read(1000) == []
    assert not (tmp_path / "state").exists()


def test_every_run_reads_the_pauses_of_any_run(tmp_path: Path) -> None:
    for pause in (ANTHROPIC, OPENAI):
        Pauses(tmp_path / "state").write(pause)

    told = Pauses(tmp_path / "state").read(1000)

    assert sorted(told, key=lambda pause: pause.until) == [OPENAI, ANTHROPIC]


def test_the_last_pause_of_a_provider_counts(tmp_path: Path) -> None:
    Pauses(tmp_path).write(ANTHROPIC)
    Pauses(tmp_path).write(ProviderPaused("anthropic", 1100, "still"))

    assert [pause.why for pause in Pauses(tmp_path).read(1000)] == ["still"]


def test_a_pause_that_is_over_is_forgotten_with_its_file(tmp_path: Path) -> None:
    pauses = Pauses(tmp_path)
    pauses.write(ANTHROPIC)
    pauses.write(OPENAI)

    assert pauses.read(1020) == [ANTHROPIC]
    assert len(list(tmp_path.iterdir())) == 1
    assert pauses.read(2000) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b'{"type":"ProviderPaused","provider":"anthropic"}', b"[]"]
)
def test_a_file_that_cannot_be_read_is_passed_over(tmp_path: Path, content: bytes) -> None:
    pauses = Pauses(tmp_path)
    pauses.write(ANTHROPIC)
    (only,) = tmp_path.iterdir()
    only.write_bytes(content)

    assert pauses.read(1000) == []
    pauses.write(ANTHROPIC)
    assert pauses.read(1000) == [ANTHROPIC]


def test_what_else_is_in_the_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "project-1234").mkdir()
    Pauses(tmp_path).write(ANTHROPIC)
    Pauses(tmp_path).read(2000)

    assert [path.name for path in tmp_path.iterdir()] == ["project-1234"]


def test_a_place_that_cannot_be_written_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    pauses = Pauses(tmp_path / "file")
    pauses.write(ANTHROPIC)

    assert pauses.read(1000) == []
