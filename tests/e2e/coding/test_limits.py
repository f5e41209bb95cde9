"""Limits of a provider, met by real coding agents: waited for, or left to another agent."""

import pytest
from tests.e2e.coding.conftest import PATIENCE, SETTINGS, Studio, script
from tests.session_files import left_behind, statuses

from iterdev.core.session import events
from iterdev.core.types import SessionId
from iterdev.store.journal import Journal

TABLE = "id,description,role\nDEV-001,write first.txt,developer\nDEV-002,write second.txt,developer\n"


def run(studio: Studio) -> tuple[str, ...]:
    table = studio.repo.home / "table.csv"
    table.write_text(TABLE, encoding="utf-8")
    return "run", "-y", "-c", "1", "--tasks", str(table)


def entries(studio: Studio) -> list[events.Entry]:
    journal = Journal(studio.repo.path / ".workflow" / "iterdev.db")
    try:
        return journal.read(SessionId(studio.session))
    finally:
        journal.close()


# gemini and qwen sit out short limits by themselves, and codex tells the minute only.
@pytest.mark.parametrize("agent", ["claude"])
def test_a_run_waits_until_the_provider_answers_again_and_starts_nobody_meanwhile(agent: str, studio: Studio) -> None:
    with studio.asking(script("limited")):
        done = studio.repo.iterdev(*run(studio), timeout=PATIENCE)
    left = left_behind(studio.repo)

    limits = [
        (entry.at, entry.event.outcome)
        for entry in entries(studio)
        if isinstance(entry.event, events.AttemptEnded) and isinstance(entry.event.outcome, events.Limited)
    ]
    starts = [entry.at for entry in entries(studio) if isinstance(entry.event, events.AttemptStarted)]
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(statuses(studio.repo.folder()).values()) == {"completed"}
    assert f"the provider of {agent} is paused until " in done.stdout
    assert limits
    for at, limited in limits:
        assert limited.reset_at, limited
        assert [start for start in starts if at <= start < limited.reset_at] == []
    assert left == []


@pytest.mark.parametrize("agent", ["claude"])
def test_while_one_provider_is_paused_the_agent_of_another_one_does_the_work(agent: str, studio: Studio) -> None:
    settings = SETTINGS.format(agent=agent, home=studio.repo.home)
    studio.configure(f'{settings}\n[agents.claude]\nfallback = "codex"\n')

    with studio.asking(script("limited")) as model:
        done = studio.repo.iterdev(*run(studio), timeout=PATIENCE)

    agents = [entry.event.agent for entry in entries(studio) if isinstance(entry.event, events.AttemptStarted)]
    assert done.returncode == 0, done.stdout + done.stderr
    assert agents[:2] == ["claude", "codex"]
    assert {request.status for request in model.requests} == {200, 429}
