import json

from tests.tracker.conftest import BEGIN

from iterdev.tracker.importers import beads


def line(name: str, **fields: object) -> str:
    return json.dumps({"id": name, "title": f"Title of {name}", "priority": 2, "issue_type": "task", **fields})


def test_an_issue_comes_over_with_its_texts_labels_and_comments() -> None:
    text = line(
        "bd-a1b2.1",
        description="It is slow.",
        design="Use a cache",
        acceptance_criteria="Below 1 s",
        labels=["perf"],
        comments=[{"id": 1, "author": "ann", "text": "Also on Mondays"}],
        created_at="2026-01-02T03:04:05Z",
        assignee="bob",
    )

    (issue,) = beads.read(text, BEGIN).issues

    said = issue.description
    assert said.context == "It is slow.\n\nDesign:\nUse a cache\n\nAcceptance criteria:\nBelow 1 s"
    assert (said.tags, said.comments[0].body, said.extra) == (("perf", "task"), "Also on Mondays", {"assignee": "bob"})
    assert issue.created_at == 1767323045


def test_0_is_the_most_urgent_there_and_5_is_it_here() -> None:
    issues = beads.read("\n".join(line(f"bd-{number}", priority=number) for number in range(5)), BEGIN).issues

    assert [issue.description.priority for issue in issues] == [5, 4, 3, 2, 1]


def test_a_closed_issue_is_completed_and_a_deferred_one_paused() -> None:
    statuses = ("open", "blocked", "closed", "deferred")

    issues = beads.read("\n".join(line(f"bd-{status}", status=status) for status in statuses), BEGIN).issues

    assert [issue.status.value for issue in issues] == ["registered", "registered", "completed", "paused"]


def test_what_it_waits_for_is_kept_and_other_links_are_text() -> None:
    links = [
        {"issue_id": "bd-1", "depends_on_id": "bd-2", "type": "blocks"},
        {"issue_id": "bd-1", "depends_on_id": "bd-3", "type": "parent-child"},
    ]

    found = beads.read(line("bd-1", dependencies=links), BEGIN)

    said = found.issues[0].description
    assert said.extra == {"depends_on": ["bd-2"]}
    assert said.context == "Depends on:\nbd-2\n\nLinked:\nbd-3 (parent-child)"
    assert found.notes == (
        "1 issue: linked to others as parent, related or discovered; the links are kept as text only",
    )


def test_what_is_no_issue_any_more_is_left_out_and_said() -> None:
    lines = [
        line("bd-1", status="tombstone"),
        line("bd-2", issue_type="message"),
        "half",
        line("../x"),
        line("bd-3", status="in_progress"),
    ]

    found = beads.read("\n".join(lines), BEGIN)

    assert [issue.id for issue in found.issues] == ["bd-3"]
    assert len(found.notes) == 5
    assert "line 3 is not JSON, and is left out" in found.notes
