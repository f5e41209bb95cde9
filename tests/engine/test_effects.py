"""What becomes of an effect: a line of the log, and a span of a trace."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from iterdev.engine.effects import LOG, PROVIDER, EffectLog, Effects, Fields, Observer, tracing
from iterdev.host.secrets import Redactor

NOW = 1_772_000_000.0
SECRET = "correct-horse-battery"


def logged(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]


def effects(folder: Path) -> Effects:
    return Effects(EffectLog(folder, lambda: NOW, Redactor([SECRET])))


def test_an_effect_is_a_line_with_its_time_its_fields_and_how_long_it_took(tmp_path: Path) -> None:
    with effects(tmp_path)("land", task="DEV-001", number=2):
        pass

    (line,) = logged(tmp_path)
    seconds = line.pop("seconds")
    assert datetime.fromisoformat(str(line.pop("ts"))).timestamp() == NOW
    assert line == {"effect": "land", "task": "DEV-001", "number": 2}
    assert isinstance(seconds, float)


def test_lines_are_added_when_an_effect_has_ended(tmp_path: Path) -> None:
    effect = effects(tmp_path)

    with effect("ask agent"):
        with effect("record"):
            pass
        during = [line["effect"] for line in logged(tmp_path)]

    assert during == ["record"]
    assert [line["effect"] for line in logged(tmp_path)] == ["record", "ask agent"]


def test_an_effect_that_fails_is_a_line_with_its_error_and_without_secrets(tmp_path: Path) -> None:
    def fails() -> None:
        with effects(tmp_path)("run tests", command=f"make KEY={SECRET}"):
            raise ValueError(f"no {SECRET}")

    with pytest.raises(ValueError, match="no "):
        fails()

    (line,) = logged(tmp_path)
    assert str(line["error"]).startswith("ValueError: no ")
    assert SECRET not in json.dumps(line)


def test_a_log_that_cannot_be_written_does_not_stop_the_effect(tmp_path: Path) -> None:
    (tmp_path / "logs").touch()

    with effects(tmp_path)("land"):
        done = True

    assert done


def test_every_observer_is_entered_before_an_effect_and_left_after_it() -> None:
    seen: list[str] = []

    def observer(who: str) -> Observer:
        @contextmanager
        def observe(name: str, fields: Fields) -> Iterator[None]:
            seen.append(f"{who} before {name} {fields['task']}")
            yield
            seen.append(f"{who} after {name}")

        return observe

    with Effects(observer("one"), observer("two"))("land", task="DEV-001"):
        seen.append("effect")

    assert seen == ["one before land DEV-001", "two before land DEV-001", "effect", "two after land", "one after land"]


def traced() -> tuple[Effects, InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Effects(*tracing(provider)), exporter


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def test_an_effect_is_a_span_with_its_fields_inside_of_the_effect_around_it() -> None:
    effect, exporter = traced()

    with effect("ask agent", task="DEV-001", agent="mine"), effect("record", events="Landed"):
        pass

    inner, outer = exporter.get_finished_spans()
    assert (inner.name, dict(inner.attributes or {})) == ("record", {"iterdev.events": "Landed"})
    assert (outer.name, dict(outer.attributes or {})) == (
        "ask agent",
        {"iterdev.task": "DEV-001", "iterdev.agent": "mine"},
    )
    assert (parent_of(inner), parent_of(outer)) == (outer.context.span_id, None)


def test_the_span_of_an_effect_that_fails_has_the_error() -> None:
    effect, exporter = traced()

    def fails() -> None:
        with effect("land"):
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fails()

    (span,) = exporter.get_finished_spans()
    assert not span.status.is_ok
    assert [event.name for event in span.events] == ["exception"]


def output_of(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_engine_does_not_load_opentelemetry_before_it_runs() -> None:
    assert output_of("import sys, iterdev.engine.run; print('opentelemetry' in sys.modules)") == "False"


def test_a_tracer_that_nothing_can_have_configured_is_not_loaded() -> None:
    code = "import sys; from iterdev.engine.effects import tracing; print(tracing(), 'opentelemetry' in sys.modules)"

    assert output_of(code) == "() False"


def test_without_opentelemetry_there_are_no_spans() -> None:
    blocked = f"import os, sys; sys.modules['opentelemetry'] = None; os.environ['{PROVIDER}'] = 'any'"

    assert output_of(f"{blocked}; from iterdev.engine.effects import tracing; print(tracing())") == "()"


def test_without_a_configured_tracer_there_are_no_spans() -> None:
    code = "import opentelemetry.trace; from iterdev.engine.effects import tracing; print(tracing())"

    assert output_of(code) == "()"
