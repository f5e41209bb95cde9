"""Generated input for all that reads what iterdev did not write: an answer or a known error, never a defect."""

import json
import tomllib
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iterdev.core.collaboration import messages
from iterdev.core.encodable import encodable
from iterdev.core.errors import IterdevError
from iterdev.core.results import Misfit, decode
from iterdev.core.rules import worker_callbacks
from iterdev.core.settings import Settings
from iterdev.core.settings import read as read_settings
from iterdev.core.types import TaskId
from iterdev.host.secrets import Redactor
from iterdev.store.journal import EventCodec
from iterdev.store.session_folder import json_records, tasks_csv
from iterdev.teams.development.roles import Role
from iterdev.teams.development.team import DEVELOPMENT

CODEC = EventCodec()
REDACT = Redactor(["correct-horse"])
bounded = settings(
    max_examples=200, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)

TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
"""Also lone surrogates and control characters."""
NUMBERS = st.integers() | st.floats() | st.sampled_from([2**63, 2**64, -(2**63) - 1, 10**400])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def refusal(work: Callable[[], object]) -> IterdevError | None:
    """The error for people that the work ends with, if it does; any other error is a defect."""
    try:
        work()
    except IterdevError as error:
        return error
    return None


def documents(*names: str) -> st.SearchStrategy[dict[str, object]]:
    """Documents with some of these fields, of any kind, and with others."""
    return st.dictionaries(st.sampled_from(names) | TEXT, JSON, max_size=8)


RESULT_FIELDS = ("findings", "error", "discoveries", "changed_files", "usage", "tech_debt", "wisdom", "scores", "tasks")


@pytest.mark.parametrize("role", [Role.architect, Role.developer, Role.tester, Role.reviewer])
@bounded
@given(document=documents(*RESULT_FIELDS, "issues", "design", "components", "external_dependencies", "test_command"))
def test_a_result_is_read_and_can_be_recorded_or_is_a_misfit(role: Role, document: dict[str, object]) -> None:
    body = json.dumps(REDACT.everywhere({"id": "T-1", "status": "completed", **document}))

    try:
        result = decode(body, kind=DEVELOPMENT.roles[role].result, task=TaskId("T-1"))
    except Misfit:
        return

    assert msgspec.json.decode(msgspec.json.encode(result), type=type(result)) == result


@bounded
@given(body=st.binary(max_size=200) | TEXT)
def test_bytes_of_any_kind_are_a_misfit(body: bytes | str) -> None:
    with pytest.raises(Misfit):
        decode(body, kind=DEVELOPMENT.roles[Role.developer].result, task=TaskId("T-1"))


CELLS = TEXT | st.sampled_from(["DEV-001", "developer", "completed", "csv-wave", "DEV-001;DEV-002", "-1", "1e999"])


@bounded
@given(
    header=st.lists(st.sampled_from(DEVELOPMENT.columns.order) | TEXT, max_size=6),
    rows=st.lists(st.lists(CELLS, max_size=6), max_size=4),
)
def test_a_table_is_read_or_refused_with_its_line(header: list[str], rows: list[list[str]]) -> None:
    table = "\n".join(",".join(f'"{cell}"' for cell in cells) for cells in (["id", "description", *header], *rows))

    refused = refusal(lambda: tasks_csv.parse(table, DEVELOPMENT))

    assert refused is None or "tasks.csv line" in refused.message


@bounded
@given(text=st.text(max_size=200))
def test_any_text_is_a_table_or_refused(text: str) -> None:
    refused = refusal(lambda: tasks_csv.parse(text, DEVELOPMENT))

    assert refused is None or refused.hint


TABLES = documents(*(name for kind in (Settings, type(Settings().run)) for name in kind.__struct_fields__))


@bounded
@given(document=st.dictionaries(st.sampled_from(Settings.__struct_fields__) | TEXT, TABLES | JSON, max_size=5))
def test_settings_of_any_kind_are_read_or_refused(document: dict[str, object]) -> None:
    refused = refusal(lambda: read_settings(document, DEVELOPMENT.workers, ("claude",)))

    assert refused is None or refused.message.startswith("iterdev.toml: ")


@bounded
@given(text=st.text("[]{}=\"'#.\\ \nab09-:T_,\0", max_size=60))
def test_a_configuration_of_any_text_is_toml_or_refused(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return

    refused = refusal(lambda: read_settings(document, DEVELOPMENT.workers, ()))

    assert refused is None or refused.hint


TAGS = ["Warned", "TasksAdded", "Landed", "AttemptEnded", "MessageSent", "SessionStarted", "TableEdited", "Unknown"]


@bounded
@given(tag=st.sampled_from(TAGS), rest=JSON)
def test_an_entry_of_any_kind_is_read_or_damage(tag: str, rest: object) -> None:
    fields = rest if isinstance(rest, dict) else {"text": rest, "tasks": rest, "task": rest, "session": rest}
    body = json.dumps({"type": tag, **fields}, default=str).encode()

    try:
        event = CODEC.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return

    assert CODEC.decode(CODEC.encode(CODEC.encodable(event))) == CODEC.encodable(event)


@bounded
@given(
    text=TEXT
    | st.sampled_from(["[developer]", "DEV-001", "[developer] DEV-001 is done"]).flatmap(
        lambda known: TEXT.map(lambda other: f"{known} {other}")
    )
)
def test_a_callback_of_any_text_is_recognised_or_not(text: str) -> None:
    found = worker_callbacks.callback(text, DEVELOPMENT.workers)

    assert found is None or found.role in DEVELOPMENT.workers
    assert worker_callbacks.begins_with_task(text, ["DEV"]) is None or text.split(maxsplit=1)[0].startswith("DEV")


@bounded
@given(summary=TEXT, kind=TEXT, data=st.dictionaries(TEXT, JSON, max_size=4))
def test_a_message_of_any_content_can_be_recorded_and_written(summary: str, kind: str, data: dict[str, object]) -> None:
    sent = messages.compose("developer", kind=kind, summary=summary, data=data)

    event = CODEC.encodable(sent)

    assert CODEC.decode(CODEC.encode(event)) == event
    assert isinstance(event, messages.MessageSent)
    assert isinstance(messages.objection("developer", event, DEVELOPMENT.message_types), str)
    (message,) = messages.evolve(messages.Messages(), event, 1.0).sent
    assert json.loads(encodable(json_records.message_line(message)))["from"] == "developer"


@bounded
@given(document=JSON)
def test_redaction_leaves_nothing_that_cannot_be_written(document: object) -> None:
    clean = REDACT.everywhere(document)

    assert json.dumps(clean, ensure_ascii=False).encode()
