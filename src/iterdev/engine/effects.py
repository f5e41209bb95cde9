"""Effects: one `with effect("land", task=...)` round everything that touches the world.

It is at once a line of the session's log, a span of a trace, and a kill point of the crash matrix.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from iterdev.core.ids import ZONE

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

LOG = "logs/engine.jsonl"

Fields = Mapping[str, str | int]
Observer = Callable[[str, Fields], AbstractContextManager[None]]
"""Is entered before an effect and left after it, with its error if it has one."""


class Effects:
    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    @contextmanager
    def __call__(self, name: str, **fields: str | int) -> Iterator[None]:
        with ExitStack() as stack:
            for observer in self._observers:
                stack.enter_context(observer(name, fields))
            yield


class EffectLog:
    """Appends a line to the engine's log when an effect has ended. An unwritable log does not stop the run."""

    def __init__(self, folder: Path, now: Callable[[], float], redact: Callable[[str], str]) -> None:
        self._path, self._now, self._redact = folder / LOG, now, redact

    @contextmanager
    def __call__(self, name: str, fields: Fields) -> Iterator[None]:
        began = time.monotonic()
        error = ""
        try:
            yield
        except BaseException as problem:
            error = f"{type(problem).__name__}: {problem}"
            raise
        finally:
            # To the millisecond, so that these lines can be put in order with what agents said.
            ts = datetime.fromtimestamp(self._now(), ZONE).isoformat(timespec="milliseconds")
            line = {"ts": ts, "effect": name, **fields, "seconds": round(time.monotonic() - began, 4)}
            text = self._redact(json.dumps(line | ({"error": error} if error else {}), ensure_ascii=False))
            with suppress(OSError):
                self._path.parent.mkdir(exist_ok=True)
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(text + "\n")


def tracing(provider: "TracerProvider | None" = None) -> tuple[Observer, ...]:
    """Spans of OpenTelemetry, where the user has installed its API and configured an exporter; nothing otherwise.

    Without a provider, the one that the process is configured with gets them.
    """
    try:
        from opentelemetry import trace  # noqa: PLC0415 - an extra, and slow to load
    except ImportError:
        return ()
    tracer = trace.get_tracer("iterdev", tracer_provider=provider)

    @contextmanager
    def span(name: str, fields: Fields) -> Iterator[None]:
        with tracer.start_as_current_span(name, attributes={f"iterdev.{key}": value for key, value in fields.items()}):
            yield

    return (span,)
