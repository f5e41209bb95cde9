"""Effects: one `with effect("land", task=...)` round everything that touches the world.

It is at once a line of the session's log, a span of a trace, and a kill point of the crash matrix.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from iterdev.core.encodable import encodable
from iterdev.core.ids import ZONE

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

LOG = "logs/engine.jsonl"
PROVIDER = "OTEL_PYTHON_TRACER_PROVIDER"
"""The variable by which OpenTelemetry configures itself when it is loaded."""

Fields = Mapping[str, str | int]
Observer = Callable[[str, Fields], AbstractContextManager[None]]
"""Is entered before an effect and left after it, with its error if it has one."""


class Effects:
    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def __call__(self, name: str, **fields: str | int) -> AbstractContextManager[None]:
        # There are many effects, and mostly one observer.
        return self._observers[0](name, fields) if len(self._observers) == 1 else self._observed_by_all(name, fields)

    @contextmanager
    def _observed_by_all(self, name: str, fields: Fields) -> Iterator[None]:
        with ExitStack() as stack:
            for observer in self._observers:
                stack.enter_context(observer(name, fields))
            yield


NO_EFFECTS = Effects()
"""Effects that nobody observes."""


class EffectLog:
    """Appends a line to the engine's log when an effect has ended. An unwritable log does not stop the run."""

    def __init__(self, folder: Path, now: Callable[[], float], redact: Callable[[str], str]) -> None:
        self._path, self._now, self._redact = folder / LOG, now, redact
        with suppress(OSError):
            self._path.parent.mkdir(exist_ok=True)

    @contextmanager
    def __call__(self, name: str, fields: Fields) -> Iterator[None]:
        began = time.monotonic()
        error = ""
        try:
            yield
        except BaseException as problem:
            error = encodable(f"{type(problem).__name__}: {problem}")
            raise
        finally:
            # To the millisecond, so that these lines can be put in order with what agents said.
            ts = datetime.fromtimestamp(self._now(), ZONE).isoformat(timespec="milliseconds")
            line = {"ts": ts, "effect": name, **fields, "seconds": round(time.monotonic() - began, 4)}
            text = msgspec.json.encode(line | ({"error": error} if error else {})).decode()
            with suppress(OSError):
                self._append(f"{self._redact(text)}\n".encode())

    def _append(self, line: bytes) -> None:
        """With bare system calls, because there are many lines and each is written at once."""
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
        try:
            os.write(file, line)
        finally:
            os.close(file)


def tracing(provider: "TracerProvider | None" = None) -> tuple[Observer, ...]:
    """Spans of OpenTelemetry, where the user has installed its API and configured an exporter; nothing otherwise.

    Without a provider, the one that the process is configured with gets them.
    """
    if provider is None and "opentelemetry.trace" not in sys.modules and PROVIDER not in os.environ:
        return ()  # Nothing can have configured one.
    try:
        from opentelemetry import trace  # noqa: PLC0415 - an extra, and slow to load
    except ImportError:
        return ()
    found = provider or trace.get_tracer_provider()
    if isinstance(found, trace.ProxyTracerProvider):
        return ()  # None is configured, and its spans would go nowhere.
    tracer = found.get_tracer("iterdev")

    @contextmanager
    def span(name: str, fields: Fields) -> Iterator[None]:
        with tracer.start_as_current_span(name, attributes={f"iterdev.{key}": value for key, value in fields.items()}):
            yield

    return (span,)
