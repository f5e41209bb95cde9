import hashlib
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tests.store.conftest import entries, started

from iterdev.core.errors import HostError
from iterdev.core.processes import ProcessIdentity
from iterdev.core.session.events import (
    AttemptEnded,
    AttemptStarted,
    Entry,
    Event,
    Interrupted,
    RollbackStarted,
    TaskReported,
    Warned,
)
from iterdev.core.session.summary import summarize
from iterdev.core.types import SessionId, Status, TaskId
from iterdev.store.journal import MIGRATIONS, NAME, Behind, Damaged, Journal
from iterdev.store.session_log import read_state

DEMO = SessionId("ids-demo-20260225")
OTHER = SessionId("ids-other-20260225")
DEV = TaskId("DEV-001")
INTERRUPTED = AttemptEnded(task=DEV, number=1, agent="mine", requests=1, outcome=Interrupted(), status=Status.pending)
REPORTED = TaskReported(task=DEV, findings="done")
ROLLED_BACK = RollbackStarted(target=DEV, snapshot="s", tip="b", rows=(), removed=(DEV,), answers={})


WRITER = """
import pathlib, sys, time
from iterdev.core.session.events import Entry, Warned
from iterdev.core.types import SessionId
from iterdev.store.journal import Behind, Journal

path, gate, name, count = sys.argv[1:]
print("ready", flush=True)
while not pathlib.Path(gate).exists():
    time.sleep(0.001)
journal = Journal(pathlib.Path(path))
session = SessionId("shared")
for number in range(int(count)):
    while True:
        newest = len(journal.read(session))
        try:
            journal.append(session, [Entry(newest + 1, 1.0, Warned(f"{name} {number}"))], after=newest)
        except Behind:
            continue
        break
journal.close()
"""

UNTIL_FULL = """
import pathlib, resource, sys
from iterdev.core.errors import HostError
from iterdev.core.session.events import Entry, Warned
from iterdev.core.types import SessionId
from iterdev.store.journal import Journal

journal = Journal(pathlib.Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
written = 0
try:
    for written in range(1000):
        journal.append(SessionId("big"), [Entry(written + 1, 1.0, Warned("x" * 10_000))], after=written)
except HostError as error:
    print(written, error.message, error.hint, sep="\\n")
"""

KEPT_FORMATS = {
    1: """
        CREATE TABLE sessions (id TEXT PRIMARY KEY, created REAL NOT NULL, summary BLOB NOT NULL) STRICT;
        CREATE TABLE events (
            session TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, body BLOB NOT NULL,
            PRIMARY KEY (session, seq)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE open_attempts (session TEXT NOT NULL, task TEXT NOT NULL, PRIMARY KEY (session, task)) STRICT;
        CREATE TABLE engines (
            session TEXT PRIMARY KEY, pid INTEGER NOT NULL, started TEXT NOT NULL, boot TEXT NOT NULL
        ) STRICT;
        CREATE TABLE projections (session TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL,
            seq INTEGER NOT NULL, PRIMARY KEY (session, name, digest)) STRICT;
        INSERT INTO sessions VALUES ('ids-demo-20260225', 1.5, CAST('{"id":"ids-demo-20260225","team":"iterdev",
            "engine":"wave","requirement":"Fix it","folder":".workflow/.csv-wave/ids-demo-20260225","phase":"active",
            "finished":false,"completed":0,"tasks":1,"running":true}' AS BLOB));
        INSERT INTO events VALUES ('ids-demo-20260225', 1, 1.5, CAST('{"type":"SessionStarted","session":{
            "id":"ids-demo-20260225","team":"iterdev","engine":"wave","requirement":"Fix it",
            "folder":".workflow/.csv-wave/ids-demo-20260225","base":"b","branch":"main"},"policy":{}}' AS BLOB));
        INSERT INTO events VALUES ('ids-demo-20260225', 2, 1.5, CAST('{"type":"TeamStarted",
            "analysis":{"score":-2,"pipeline":"patch","capabilities":[],"complexity":{"score":0,"level":"Low"}}}'
            AS BLOB));
        INSERT INTO events VALUES ('ids-demo-20260225', 3, 2.5, CAST('{"type":"TasksAdded","tasks":[{
            "id":"DEV-001","title":"Fix it","description":"Do","role":"developer","wave":1,
            "fields":{"type":"development","pipeline":"patch"}}]}' AS BLOB));
        INSERT INTO events VALUES ('ids-demo-20260225', 4, 3.5, CAST('{"type":"AttemptStarted","task":"DEV-001",
            "number":1,"agent":"mine","base":"b"}' AS BLOB));
        INSERT INTO open_attempts VALUES ('ids-demo-20260225', 'DEV-001');
    """,
}
KEPT_FORMATS[2] = f"""{KEPT_FORMATS[1]}
    CREATE TABLE tracker (seq INTEGER PRIMARY KEY, at REAL NOT NULL, body BLOB NOT NULL) STRICT;
    CREATE TABLE followed (session TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
    INSERT INTO tracker VALUES (1, 1.5, CAST('{{"type":"IssueCreated","issue":{{"id":"GH-1",
        "description":{{"title":"Login fails"}}}}}}' AS BLOB));
    INSERT INTO followed VALUES ('ids-demo-20260225', 4);
"""
KEPT_FORMATS[3] = f"""{KEPT_FORMATS[2]}
    CREATE TABLE snapshots (session TEXT PRIMARY KEY, seq INTEGER NOT NULL, mark BLOB NOT NULL, body BLOB NOT NULL)
        STRICT;
    INSERT INTO snapshots VALUES ('ids-demo-20260225', 2, x'00', x'00');
"""
"""A journal of each format as it lay on disks: the session of one task whose attempt is under way.

A new migration adds its format here, and changes none of the old ones.
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    journal = Journal(path)
    yield journal
    journal.close()


def append(journal: Journal, session: SessionId, events: Sequence[Event], *, at: float, after: int) -> list[Entry]:
    """Writes the events as they are."""
    written = entries(events, at=at, after=after)
    journal.append(session, written, after=after)
    return written


def written(journal: Journal, session: SessionId = DEMO) -> list[str]:
    return [entry.event.text for entry in journal.read(session) if isinstance(entry.event, Warned)]


def write_format(path: Path, number: int) -> None:
    with sqlite3.connect(path) as database:
        database.executescript(KEPT_FORMATS[number])
        database.execute(f"PRAGMA user_version = {number}")
    database.close()


def schema(path: Path) -> list[tuple[str, str]]:
    database = sqlite3.connect(path)
    rows = database.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").fetchall()
    database.close()
    return [(name, " ".join(sql.split())) for name, sql in rows]


def spoil(path: Path, first_page: int, last_page: int) -> None:
    """Overwrites whole pages, as a failing disk does."""
    with path.open("r+b") as file:
        file.seek(4096 * (first_page - 1))
        file.write(b"\xa5" * 4096 * (last_page - first_page + 1))


def test_entries_come_back_in_order_with_their_number_and_time(journal: Journal) -> None:
    append(journal, DEMO, [Warned("one"), Warned("two")], at=10.0, after=0)
    append(journal, DEMO, [Warned("three")], at=20.5, after=2)

    assert [(entry.seq, entry.at, entry.event) for entry in journal.read(DEMO)] == [
        (1, 10.0, Warned("one")),
        (2, 10.0, Warned("two")),
        (3, 20.5, Warned("three")),
    ]
    assert [entry.seq for entry in journal.read(DEMO, after=2)] == [3]


def test_what_was_appended_is_what_is_read_later(journal: Journal) -> None:
    events = append(journal, DEMO, [started(DEMO), Warned("Überraschung \u2028 中")], at=10.0, after=0)

    assert journal.read(DEMO) == events


def test_sessions_do_not_see_each_other(journal: Journal) -> None:
    append(journal, DEMO, [started(DEMO), Warned("mine")], at=1.0, after=0)
    append(journal, OTHER, [started(OTHER)], at=2.0, after=0)

    assert written(journal, OTHER) == []
    assert journal.sessions() == [DEMO, OTHER]


def test_sessions_are_listed_from_the_oldest_to_the_newest(journal: Journal) -> None:
    for name, at in (("b", 2.0), ("c", 3.0), ("a", 1.0)):
        append(journal, SessionId(name), [started(name)], at=at, after=0)

    assert journal.sessions() == ["a", "b", "c"]


def test_the_session_in_which_something_happened_last_is_the_last_by_activity(journal: Journal) -> None:
    append(journal, DEMO, [started(DEMO)], at=1.0, after=0)
    append(journal, OTHER, [started(OTHER)], at=2.0, after=0)
    before = journal.by_activity()

    append(journal, DEMO, [Warned("odd")], at=3.0, after=1)

    assert (before, journal.by_activity()) == ([DEMO, OTHER], [OTHER, DEMO])


def test_a_journal_that_is_opened_again_has_everything(path: Path) -> None:
    first = Journal(path)
    append(first, DEMO, [started(DEMO), Warned("kept")], at=1.0, after=0)
    first.close()

    second = Journal(path)

    assert second.sessions() == [DEMO]
    assert written(second) == ["kept"]
    second.close()


def test_a_connection_keeps_its_locks_when_the_same_process_opens_another_one(path: Path, journal: Journal) -> None:
    append(journal, DEMO, [started(DEMO), Warned("first")], at=1.0, after=0)
    Journal(path).close()
    gate = path.with_name("gate")
    gate.touch()

    # A process that takes itself for the last one deletes the write-ahead log when it ends.
    subprocess.run([sys.executable, "-c", WRITER, path, gate, "second", "1"], check=True, capture_output=True)

    assert path.with_name(f"{NAME}-wal").exists()
    assert [entry.event.text for entry in journal.read(SessionId("shared"))] == ["second 0"]


def test_the_settings_survive_a_power_cut(journal: Journal) -> None:
    assert journal._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert journal._db.execute("PRAGMA synchronous").fetchone() == (2,)


def test_the_second_of_two_writers_is_behind(path: Path, journal: Journal) -> None:
    other = Journal(path)
    append(other, DEMO, [Warned("first")], at=1.0, after=0)

    with pytest.raises(Behind):
        append(journal, DEMO, [Warned("second")], at=1.0, after=0)
    assert written(journal) == ["first"]

    append(journal, DEMO, [Warned("second")], at=1.0, after=1)
    assert written(other) == ["first", "second"]
    other.close()


def test_a_writer_ahead_of_the_journal_is_rejected_too(journal: Journal) -> None:
    with pytest.raises(Behind):
        append(journal, DEMO, [Warned("after nothing")], at=1.0, after=7)

    assert journal.read(DEMO) == []


def test_news_of_another_process_are_noticed(path: Path, journal: Journal) -> None:
    other = Journal(path)
    before = journal.newest(DEMO)

    append(other, DEMO, [Warned("news")], at=1.0, after=0)

    assert (before, journal.newest(DEMO)) == (0, 1)
    other.close()


def test_many_processes_write_at_once_and_nothing_is_lost_or_doubled(path: Path, tmp_path: Path) -> None:
    writers, count, gate = 4, 25, tmp_path / "gate"
    command = [sys.executable, "-c", WRITER, str(path), str(gate)]
    processes = [
        subprocess.Popen([*command, f"w{number}", str(count)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for number in range(writers)
    ]
    for process in processes:
        assert process.stdout
        process.stdout.readline()

    gate.touch()
    errors = [process.communicate(timeout=120)[1].decode() for process in processes]

    assert errors == [""] * writers
    journal = Journal(path)
    read = journal.read(SessionId("shared"))
    texts = written(journal, SessionId("shared"))
    journal.close()
    assert [entry.seq for entry in read] == list(range(1, writers * count + 1))
    for number in range(writers):
        mine = [text for text in texts if text.startswith(f"w{number} ")]
        assert mine == [f"w{number} {turn}" for turn in range(count)]


def test_many_processes_may_open_a_journal_that_is_not_there_yet(tmp_path: Path) -> None:
    for turn in range(5):
        path, gate = tmp_path / str(turn) / NAME, tmp_path / f"gate-{turn}"
        command = [sys.executable, "-c", WRITER, str(path), str(gate), "w", "0"]
        processes = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)
        ]
        for process in processes:
            assert process.stdout
            process.stdout.readline()

        gate.touch()

        assert [process.communicate(timeout=120)[1] for process in processes] == [""] * 4


def test_threads_of_one_process_may_share_a_journal(journal: Journal) -> None:
    def write(session: SessionId) -> None:
        try:
            for number in range(50):
                append(journal, session, [Warned(str(number))], at=1.0, after=number)
                journal.intend(session, "tasks.csv", str(number), seq=number)
        except Exception as error:  # noqa: BLE001 - a thread's error has to be told to the test
            errors.append(error)

    errors: list[Exception] = []
    sessions = [SessionId(f"s{number}") for number in range(4)]
    threads = [threading.Thread(target=write, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert errors == []
    assert [len(journal.read(session)) for session in sessions] == [50] * 4


def test_a_second_open_attempt_of_a_task_is_refused_by_the_database(journal: Journal) -> None:
    append(journal, DEMO, [AttemptStarted(DEV, 1, "mine", "b")], at=1.0, after=0)

    with pytest.raises(sqlite3.IntegrityError):
        append(journal, DEMO, [Warned("before"), AttemptStarted(DEV, 2, "mine", "b")], at=2.0, after=1)

    assert [entry.seq for entry in journal.read(DEMO)] == [1]


@pytest.mark.parametrize(
    "ended", [INTERRUPTED, REPORTED, ROLLED_BACK], ids=["attempt ended", "reported", "rolled back"]
)
def test_a_task_can_be_tried_again_once_nobody_works_on_it(journal: Journal, ended: Event) -> None:
    append(journal, DEMO, [AttemptStarted(DEV, 1, "mine", "b")], at=1.0, after=0)
    append(journal, DEMO, [ended], at=2.0, after=1)

    append(journal, DEMO, [AttemptStarted(DEV, 2, "mine", "b")], at=3.0, after=2)

    assert [entry.seq for entry in journal.read(DEMO)] == [1, 2, 3]


def test_the_same_task_of_another_session_may_be_under_way(journal: Journal) -> None:
    append(journal, DEMO, [AttemptStarted(DEV, 1, "mine", "b")], at=1.0, after=0)

    append(journal, OTHER, [AttemptStarted(DEV, 1, "mine", "b")], at=1.0, after=0)

    assert len(journal.read(OTHER)) == 1


def test_events_are_written_together_or_not_at_all(journal: Journal) -> None:
    attempt = AttemptStarted(DEV, 1, "mine", "b")

    with pytest.raises(sqlite3.IntegrityError):
        append(journal, OTHER, [Warned("first"), started(OTHER), attempt, attempt], at=1.0, after=0)

    assert (journal.read(OTHER), journal.sessions()) == ([], [])
    append(journal, OTHER, [Warned("later")], at=2.0, after=0)
    assert written(journal, OTHER) == ["later"]


def test_a_newer_format_is_refused_with_a_sentence_and_left_as_it_is(path: Path) -> None:
    newer = len(MIGRATIONS) + 1
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE something_new (id TEXT)")
        database.execute(f"PRAGMA user_version = {newer}")
    database.close()
    before = hashlib.sha256(path.read_bytes()).hexdigest()

    with pytest.raises(HostError) as refusal:
        Journal(path)

    assert not isinstance(refusal.value, Damaged)
    assert f'"{path}" was written by a newer iterdev (format {newer}' in refusal.value.message
    assert refusal.value.hint == "upgrade iterdev"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_every_format_that_was_ever_written_is_kept_for_these_tests() -> None:
    assert list(KEPT_FORMATS) == list(range(1, len(MIGRATIONS) + 1))


@pytest.mark.parametrize("number", KEPT_FORMATS)
def test_a_journal_of_an_old_format_is_migrated_with_all_it_holds(number: int, tmp_path: Path) -> None:
    write_format(tmp_path / "old.db", number)
    Journal(tmp_path / "new.db").close()

    migrated = Journal(tmp_path / "old.db")

    state = read_state(migrated, DEMO)
    assert (state.seq, list(state.attempts.running), state.updated_at) == (4, [DEV], 3.5)
    assert migrated.summaries() == [summarize(state)]
    with pytest.raises(sqlite3.IntegrityError):
        append(migrated, DEMO, [AttemptStarted(DEV, 2, "mine", "b")], at=4.0, after=4)
    append(migrated, DEMO, [INTERRUPTED], at=4.0, after=4)
    migrated.close()
    assert schema(tmp_path / "old.db") == schema(tmp_path / "new.db")


def test_an_empty_file_becomes_a_journal(path: Path) -> None:
    path.touch()

    journal = Journal(path)

    append(journal, DEMO, [Warned("first")], at=1.0, after=0)
    assert written(journal) == ["first"]
    journal.close()


def test_a_file_that_is_no_database_is_damaged(path: Path) -> None:
    path.write_bytes(b"this is not a database at all " * 200)

    with pytest.raises(Damaged, match="is damaged") as damage:
        Journal(path)

    assert str(path) in damage.value.message
    assert "iterdev doctor" in damage.value.hint


def test_a_journal_with_corrupt_pages_is_damaged(path: Path) -> None:
    journal = Journal(path)
    append(journal, DEMO, [started(DEMO), *[Warned("x" * 3000) for _ in range(100)]], at=1.0, after=0)
    journal.close()
    spoil(path, 2, path.stat().st_size // 4096)

    def look() -> None:
        spoiled = Journal(path)
        try:
            for session in spoiled.sessions():
                spoiled.read(session)
        finally:
            spoiled.close()

    with pytest.raises(Damaged):
        look()


@pytest.mark.parametrize(
    "look",
    [
        lambda journal: journal.sessions(),
        lambda journal: journal.read(DEMO),
        lambda journal: journal.newest(DEMO),
        lambda journal: journal.holder(DEMO),
        lambda journal: journal.projected(DEMO, "tasks.csv"),
        lambda journal: append(journal, DEMO, [Warned("more")], at=2.0, after=1),
        lambda journal: journal.take(DEMO, ProcessIdentity(pid=1, started=2, boot="3")),
        lambda journal: journal.intend(DEMO, "tasks.csv", "digest", seq=1),
    ],
    ids=["sessions", "read", "newest", "holder", "projected", "append", "take", "intend"],
)
def test_every_use_of_a_journal_with_corrupt_pages_says_that_it_is_damaged(
    path: Path, look: Callable[[Journal], object]
) -> None:
    journal = Journal(path)
    append(journal, DEMO, [started(DEMO)], at=1.0, after=0)
    journal.take(DEMO, ProcessIdentity(pid=1, started=2, boot="3"))
    journal.close()
    spoil(path, 2, path.stat().st_size // 4096)
    journal = Journal(path)

    with pytest.raises(Damaged):
        look(journal)

    journal.close()


def test_an_unreadable_entry_is_damage(path: Path, journal: Journal) -> None:
    append(journal, DEMO, [Warned("fine")], at=1.0, after=0)
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO events VALUES (?, 2, 1.0, ?)", (DEMO, b'{"type":"Warned"}'))
    database.close()

    with pytest.raises(Damaged):
        journal.read(DEMO)


@pytest.mark.parametrize("table", ["events", "sessions"])
def test_text_that_is_not_utf_8_is_damage_although_the_file_is_a_sound_database(
    path: Path, journal: Journal, table: str
) -> None:
    append(journal, DEMO, [started(DEMO), Warned("a word to spoil")], at=1.0, after=0)
    with sqlite3.connect(path) as database:
        if table == "events":
            body = b'{"type":"Warned","text":"\xff\xfe"}'
            database.execute("UPDATE events SET body = ? WHERE seq = 2", (body,))
        else:
            database.execute("UPDATE sessions SET id = CAST(x'FF' AS TEXT)")
    database.close()

    with pytest.raises(Damaged):
        journal.read(DEMO) if table == "events" else journal.sessions()
    assert len(journal.problems()) == 1


def test_problems_of_the_file_are_reported(path: Path) -> None:
    journal = Journal(path)
    append(journal, DEMO, [started(DEMO), *[Warned("x" * 3000) for _ in range(100)]], at=1.0, after=0)
    healthy = journal.problems()
    journal.close()
    pages = path.stat().st_size // 4096
    spoil(path, pages - 20, pages - 10)

    journal = Journal(path)

    assert healthy == []
    assert journal.problems() != []
    journal.close()


def test_a_folder_that_cannot_be_made_is_an_error_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(HostError) as failure:
        Journal(tmp_path / "file" / NAME)

    assert not isinstance(failure.value, Damaged)
    assert f'"{tmp_path / "file" / NAME}"' in failure.value.message


def test_a_file_that_cannot_be_opened_is_an_error_of_the_host(path: Path) -> None:
    path.mkdir()

    with pytest.raises(HostError, match="cannot be used") as failure:
        Journal(path)

    assert not isinstance(failure.value, Damaged)


def test_a_disk_that_takes_no_more_is_an_error_of_the_host_and_costs_nothing_that_was_written(path: Path) -> None:
    command = [sys.executable, "-c", UNTIL_FULL, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ended.stderr == ""
    count, message, _hint = ended.stdout.splitlines()
    assert message.startswith(f'The journal "{path}" cannot be used: ')
    journal = Journal(path)
    assert int(count) > 5
    assert len(journal.read(SessionId("big"))) == int(count)
    journal.close()


def test_a_full_disk_is_named_and_the_journal_can_be_used_when_there_is_room_again(journal: Journal) -> None:
    append(journal, DEMO, [Warned("before")], at=1.0, after=0)
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(HostError, match="full") as failure:
        append(journal, DEMO, [Warned("x" * 100_000)], at=2.0, after=1)

    assert failure.value.hint.startswith("free some space")
    journal._db.execute("PRAGMA max_page_count = 1000000")
    append(journal, DEMO, [Warned("after")], at=3.0, after=1)
    assert written(journal) == ["before", "after"]


def test_the_process_that_took_an_engine_is_known_until_it_is_released(journal: Journal) -> None:
    mine = ProcessIdentity(pid=11, started=22, boot="33")

    journal.take(DEMO, ProcessIdentity(pid=1, started=2, boot="3"))
    journal.take(DEMO, mine)

    assert (journal.holder(DEMO), journal.holder(OTHER)) == (mine, None)
    journal.release(DEMO)
    assert journal.holder(DEMO) is None


def test_a_text_is_ours_from_before_it_is_written_until_the_next_one_was(journal: Journal) -> None:
    journal.intend(DEMO, "tasks.csv", "one", seq=4)
    journal.settle(DEMO, "tasks.csv", "one")

    journal.intend(DEMO, "tasks.csv", "two", seq=9)

    assert journal.projected(DEMO, "tasks.csv") == {"one": 4, "two": 9}
    journal.settle(DEMO, "tasks.csv", "two")
    assert journal.projected(DEMO, "tasks.csv") == {"two": 9}


def test_the_texts_of_other_files_and_sessions_are_their_own(journal: Journal) -> None:
    journal.intend(DEMO, "tasks.csv", "one", seq=1)

    journal.settle(OTHER, "tasks.csv", "two")

    assert journal.projected(DEMO, "tasks.csv") == {"one": 1}
    assert journal.projected(DEMO, "other.csv") == journal.projected(OTHER, "tasks.csv") == {}


def test_what_was_written_before_1970_is_read(journal: Journal) -> None:
    early = Entry(1, -86400.0, Warned("early"))

    journal.append(DEMO, [early], after=0)

    assert journal.read(DEMO) == [early]
