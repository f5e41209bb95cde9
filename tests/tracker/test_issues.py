import pytest
from tests.tracker.conftest import BEGIN

from iterdev.core.errors import UserError
from iterdev.tracker.issues import IssueStatus, checked_id, mentioned_ids, new_id, read_status


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("registered", IssueStatus.registered),
        ("pending", IssueStatus.registered),
        ("in-progress", IssueStatus.executing),
        ("IN_PROGRESS", IssueStatus.executing),
        ("resolved", IssueStatus.completed),
        (" paused ", IssueStatus.paused),
    ],
)
def test_a_status_has_second_names(word: str, status: IssueStatus) -> None:
    assert read_status(word) is status


@pytest.mark.requirement("R174")
def test_an_unknown_status_is_refused_with_the_list_of_valid_ones() -> None:
    with pytest.raises(UserError, match='"done" is not a status') as refused:
        read_status("done")

    assert refused.value.hint == "one of: " + ", ".join(IssueStatus)
    assert len(IssueStatus) == 8


def test_an_id_is_made_of_the_date_and_the_time_and_the_next_second_if_it_is_taken() -> None:
    first = new_id(BEGIN, ())

    assert first == "ISS-20260308-120000"
    assert new_id(BEGIN, {first}) == "ISS-20260308-120001"


@pytest.mark.requirement("R144")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ISS-20260308-120000 GH-42", ["ISS-20260308-120000", "GH-42"]),
        ("Please fix GH-7, then (GH-42); not GH-7 again", ["GH-7", "GH-42"]),
        ("ISS-20260308-12000 ISS-2026038-120000 GH-", []),
        ("XGH-7 ISS-20260308-1200001 GH-7a", []),
        ("--mode=full GH-1--all-pending", ["GH-1"]),
    ],
)
def test_ids_are_recognised_anywhere_in_a_text(text: str, found: list[str]) -> None:
    assert list(mentioned_ids(text)) == found


@pytest.mark.parametrize("name", ["", "../etc", "a/b", "-x", "a b", "x" * 101, "a..b"])
def test_an_id_that_could_be_no_name_of_a_file_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="cannot be the id"):
        checked_id(name)
