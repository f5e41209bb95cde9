"""The check itself: what it finds, and what it allows."""

import pytest
from tests.chaos.verdict import AgentRun, GivenAway, overlaps, verdict

TASKS = ["DEV-001", "DEV-002"]
FILES = ["DEV-001.txt", "DEV-002.txt"]


def agent(first: float, last: float, host: str = "h1", task: str = "DEV-001") -> AgentRun:
    return AgentRun(task=task, host=host, first=first, last=last)


def test_every_task_that_landed_once_is_as_it_should_be() -> None:
    found = verdict(TASKS, FILES, TASKS, [agent(0, 2), agent(3, 5), agent(1, 4, task="DEV-002")], ())

    assert found.holds
    assert found.agents == 3


@pytest.mark.parametrize(("files", "landed"), [(FILES[:1], TASKS), (FILES, TASKS[:1])])
def test_a_task_without_its_file_or_its_commit_is_lost(files: list[str], landed: list[str]) -> None:
    assert verdict(TASKS, files, landed, [], ()).lost == ("DEV-002",)


def test_a_task_with_two_commits_has_landed_twice() -> None:
    assert verdict(TASKS, FILES, [*TASKS, "DEV-001"], [], ()).landed_twice == ("DEV-001",)


def test_an_agent_that_outlives_the_beginning_of_the_next_one_is_found() -> None:
    found = overlaps([agent(3, 9, "h2"), agent(0, 3.5)])

    assert [(one.host, one.seconds) for one in found] == [("h1", 0.5)]


@pytest.mark.parametrize(("at", "seconds"), [(3.0, [2.0]), (5.5, []), (-1.0, [])])
def test_an_agent_that_outlives_its_attempt_is_found_without_a_next_one(at: float, seconds: list[float]) -> None:
    given_away = [GivenAway(task="DEV-001", at=at), GivenAway(task="DEV-002", at=3.0)]

    found = verdict(TASKS, FILES, TASKS, [agent(0, 5)], (), given_away)

    assert [one.seconds for one in found.outlived] == seconds
    assert found.holds is not bool(seconds)
    assert verdict(TASKS, FILES, TASKS, [agent(0, 5)], ["h1"], given_away).holds


@pytest.mark.parametrize(("seconds", "holds"), [(2.4, True), (2.6, False)])
def test_a_host_that_was_frozen_is_given_the_grace(seconds: float, holds: bool) -> None:  # noqa: FBT001 - a column
    agents = [agent(0, 3 + seconds), agent(3, 9, "h2")]

    assert verdict(TASKS, FILES, TASKS, agents, ["h1"]).holds is holds
    assert not verdict(TASKS, FILES, TASKS, agents, ["h2"]).holds
