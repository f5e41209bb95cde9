"""Pauses of providers, told from run to run."""

from pathlib import Path

import pytest

from iterdev.core.limits.providers import ProviderPaused
from iterdev.host.provider_pauses import read, write

ANTHROPIC, OPENAI = ProviderPaused("anthropic", 1050.5, "429"), ProviderPaused("open/ai é", 1020, "slow down")


def test_there_are_no_pauses_at_first(tmp_path: Path) -> None:
    assert read(tmp_path / "state", 1000) == []
    assert not (tmp_path / "state").exists()


def test_every_run_reads_the_pauses_of_any_run(tmp_path: Path) -> None:
    for pause in (ANTHROPIC, OPENAI):
        write(tmp_path / "state", pause)

    told = read(tmp_path / "state", 1000)

    assert sorted(told, key=lambda pause: pause.until) == [OPENAI, ANTHROPIC]


def test_the_last_pause_of_a_provider_counts(tmp_path: Path) -> None:
    write(tmp_path, ANTHROPIC)
    write(tmp_path, ProviderPaused("anthropic", 1100, "still"))

    assert [pause.why for pause in read(tmp_path, 1000)] == ["still"]


def test_a_pause_that_is_over_is_forgotten_with_its_file(tmp_path: Path) -> None:
    write(tmp_path, ANTHROPIC)
    write(tmp_path, OPENAI)

    assert read(tmp_path, 1020) == [ANTHROPIC]
    assert len(list(tmp_path.iterdir())) == 1
    assert read(tmp_path, 2000) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b'{"type":"ProviderPaused","provider":"anthropic"}', b"[]"]
)
def test_a_file_that_cannot_be_read_is_passed_over(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, ANTHROPIC)
    (only,) = tmp_path.iterdir()
    only.write_bytes(content)

    assert read(tmp_path, 1000) == []
    write(tmp_path, ANTHROPIC)
    assert read(tmp_path, 1000) == [ANTHROPIC]


def test_what_else_is_in_the_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "project-1234").mkdir()
    write(tmp_path, ANTHROPIC)
    read(tmp_path, 2000)

    assert [path.name for path in tmp_path.iterdir()] == ["project-1234"]


def test_a_place_that_cannot_be_written_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write(tmp_path / "file", ANTHROPIC)

    assert read(tmp_path / "file", 1000) == []
