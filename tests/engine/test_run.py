"""Runs of an engine with the scripted agent: what can be followed meanwhile, and what is left of it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.conftest import Repo
from tests.engine.conftest import SECRET, Runs

from iterdev.core.types import Ending
from iterdev.engine.effects import LOG, Fields, tracing
from iterdev.engine.run import RunObserver


@pytest.fixture
def runs(environment: Repo) -> Iterator[Runs]:
    runs = Runs(environment, "true")
    yield runs
    runs.repository.close()


def test_what_an_agent_says_is_in_its_log_while_it_still_runs(environment: Repo) -> None:
    goes_on = environment.home / "go"
    runs = Runs(environment, f"while [ ! -e {goes_on} ]; do sleep 0.02; done")
    seen: list[str] = []

    def hear(task: str, text: str) -> None:
        seen.append((runs.folder / "logs" / f"{task}-1.log").read_text())
        if "password" in text:
            goes_on.touch()

    ending = runs.drive(RunObserver(agent_output=hear))
    runs.repository.close()

    assert ending is Ending.over
    assert seen[0].endswith(" half way\n")
    (at, first), (_, second) = (line.split(" ", 1) for line in seen[1].splitlines())
    assert datetime.fromisoformat(at).timestamp() == pytest.approx(time.time(), abs=3600)
    assert first == "half way"
    assert second.startswith("the password is ")
    assert SECRET not in second


def test_the_engine_log_has_a_line_for_each_effect(runs: Runs) -> None:
    ended: list[tuple[str, Fields]] = []

    @contextmanager
    def observer(name: str, fields: Fields) -> Iterator[None]:
        yield
        ended.append((name, fields))

    runs.drive(None, observer)

    lines = [json.loads(line) for line in (runs.folder / LOG).read_text(encoding="utf-8").splitlines()]
    assert [line["effect"] for line in lines] == [name for name, _ in ended]
    assert {"open branch", "record", "borrow workspace", "ask agent", "commit", "run tests", "land"} <= {
        line["effect"] for line in lines
    }
    assert all(line["ts"] and line["seconds"] >= 0 and "error" not in line for line in lines)
    assert [line["task"] for line in lines if line["effect"] == "land"] == ["DEV-001"]
    assert [line["agent"] for line in lines if line["effect"] == "ask agent"] == ["played"]


def test_a_later_engine_appends_to_the_log(runs: Runs) -> None:
    runs.drive()
    before = (runs.folder / LOG).read_text(encoding="utf-8")
    runs.drive()

    assert (runs.folder / LOG).read_text(encoding="utf-8").startswith(before)


def test_a_run_is_traced_with_a_span_for_each_effect(runs: Runs) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    runs.drive(None, *tracing(provider))

    lines = [json.loads(line) for line in (runs.folder / LOG).read_text(encoding="utf-8").splitlines()]
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == [line["effect"] for line in lines]
    landed = next(span for span in spans if span.name == "land")
    assert dict(landed.attributes or {}) == {"iterdev.task": "DEV-001"}
