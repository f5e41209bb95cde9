import json
import subprocess
import sys
from pathlib import Path

import pytest

from iterdev.core.results import Discovery
from iterdev.store.session_folder import discoveries as session_folder_discoveries

TYPES = {
    "design_decision": {"component": "auth", "approach": "JWT", "rationale": "no state", "alternatives": []},
    "implementation": {"file": "a.py", "changes": "all", "pattern_used": "none", "notes": ""},
    "test_result": {"test_suite": "unit", "pass_rate": 0.9, "failures": ["t"], "regressions": 0},
    "review_finding": {"file_line": "a.py:7", "severity": "HIGH", "dimension": "security", "description": "x"},
    "convention": {"name": "tabs", "description": "no tabs", "example": ""},
    "gc_decision": {"round": 1, "signal": "REVISION", "critical_count": 1, "score": 5.5},
    "file_found": {"path": "a.py", "relevance": "high", "purpose": "all"},
    "pattern_found": {"pattern": "singleton", "location": "a.py", "description": "bad"},
    "dependency_found": {"from": "a.py", "to": "b.py", "type": "import"},
    "solution_approach": {"issue_id": "GH-1", "approach": "mend", "estimated_files": 2},
    "conflict_found": {"issues": ["GH-1", "GH-2"], "files": ["a.py"], "resolution": "order"},
    "impl_result": {"issue_id": "GH-1", "files_changed": 2, "tests_pass": True},
}
KEYS = {
    "design_decision": ["component"],
    "implementation": ["file"],
    "test_result": ["test_suite"],
    "review_finding": ["file_line"],
    "convention": ["name"],
    "gc_decision": ["round"],
    "file_found": ["path"],
    "pattern_found": ["pattern", "location"],
    "dependency_found": ["from", "to"],
    "solution_approach": ["issue_id"],
    "conflict_found": ["files"],
    "impl_result": ["issue_id"],
}
ADDER = """
import pathlib, sys, time
from iterdev.core.results import Discovery
from iterdev.store.session_folder import discoveries as board

path, gate, name = map(pathlib.Path, sys.argv[1:])
print("ready", flush=True)
while not gate.exists():
    time.sleep(0.001)
for number in range(50):
    data = {"file": f"{name}-{number}.py", "notes": "x" * 2000}
    board.add(path, [Discovery("implementation", data)], worker=str(name), ts="now")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / session_folder_discoveries.NAME


def convention(name: object, **more: object) -> Discovery:
    return Discovery("convention", {"name": name, **more})


def add(path: Path, *discoveries: Discovery, worker: str = "DEV-001") -> int:
    return session_folder_discoveries.add(path, discoveries, worker=worker, ts="2026-02-25T14:13:20+08:00")


def found(path: Path) -> list[object]:
    return [line.data["name"] for line in session_folder_discoveries.read(path)]


@pytest.mark.requirement("R109")
def test_an_entry_is_one_json_object_on_a_line_with_time_worker_type_and_data(path: Path) -> None:
    add(path, convention("tabs\nand\u2028spaces\x85", example="Größe"))

    (line,) = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert json.loads(line) == {
        "ts": "2026-02-25T14:13:20+08:00",
        "worker": "DEV-001",
        "type": "convention",
        "data": {"name": "tabs\nand\u2028spaces\x85", "example": "Größe"},
    }


def test_there_is_nothing_on_a_board_that_does_not_exist(path: Path) -> None:
    assert session_folder_discoveries.read(path) == []


@pytest.mark.requirement("R113")
@pytest.mark.parametrize("kind", TYPES)
def test_each_type_of_both_teams_is_accepted(path: Path, kind: str) -> None:
    assert add(path, Discovery(kind, TYPES[kind])) == 1

    (line,) = session_folder_discoveries.read(path)
    assert (line.worker, line.type, line.data) == ("DEV-001", kind, TYPES[kind])


@pytest.mark.requirement("R113")
def test_another_type_is_not_accepted(path: Path) -> None:
    assert add(path, Discovery("gossip", {"name": "x"})) == 0
    assert session_folder_discoveries.read(path) == []


@pytest.mark.requirement("R110")
@pytest.mark.parametrize("kind", TYPES)
def test_an_entry_with_the_type_and_key_of_an_existing_one_is_not_added(path: Path, kind: str) -> None:
    add(path, Discovery(kind, TYPES[kind]))
    before = path.read_bytes()
    same = {name: value if name in KEYS[kind] else "other" for name, value in TYPES[kind].items()}

    assert add(path, Discovery(kind, same), worker="DEV-002") == 0
    assert path.read_bytes() == before


@pytest.mark.requirement("R110")
@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, keys in KEYS.items() for key in keys])
def test_an_entry_that_differs_in_its_key_is_added(path: Path, kind: str, key: str) -> None:
    add(path, Discovery(kind, TYPES[kind]))

    assert add(path, Discovery(kind, TYPES[kind] | {key: "another"})) == 1
    assert len(session_folder_discoveries.read(path)) == 2


@pytest.mark.requirement("R77", "R110")
def test_the_same_round_of_another_sprint_is_another_decision(path: Path) -> None:
    first, second = (Discovery("gc_decision", TYPES["gc_decision"] | {"sprint": number}) for number in (1, 2))

    assert [add(path, first), add(path, second), add(path, first)] == [1, 1, 0]


@pytest.mark.requirement("R110")
def test_duplicates_within_one_result_are_added_once(path: Path) -> None:
    assert add(path, convention("tabs"), convention("tabs", again=True), convention("names")) == 2
    assert found(path) == ["tabs", "names"]


@pytest.mark.requirement("R110")
@pytest.mark.parametrize("name", ["line\u2028separator", "next\x85line", "form\x0cfeed", "two\nlines"])
def test_an_entry_with_an_odd_line_break_in_its_text_is_still_known(path: Path, name: str) -> None:
    add(path, convention(name))

    assert add(path, convention(name)) == 0
    assert found(path) == [name]


@pytest.mark.requirement("R110")
def test_what_an_agent_wrote_itself_counts(path: Path) -> None:
    path.write_text('{"ts":"t","worker":"DEV-009","type":"convention","data":{"name":"tabs"}}\n')

    assert add(path, convention("tabs"), convention("names")) == 1


def test_an_agent_that_writes_the_same_twice_is_read_once_where_it_stood_first(path: Path) -> None:
    entries = [("tabs", "first"), ("names", "second"), ("tabs", "third")]
    text = [json.dumps({"type": "convention", "data": {"name": name, "by": by}}) for name, by in entries]
    path.write_text("\n".join(text))

    assert [line.data["by"] for line in session_folder_discoveries.read(path)] == ["first", "second"]


@pytest.mark.requirement("R111")
def test_existing_lines_are_never_changed_or_removed(path: Path) -> None:
    written = b'# a comment\n{"broken": \n\xff\xfe\n{"type":"convention","data":{"name":"a"},"extra":1}\n\n'
    path.write_bytes(written)

    add(path, convention("b"))
    add(path, convention("c"))

    assert path.read_bytes().startswith(written)
    assert found(path) == ["a", "b", "c"]


@pytest.mark.requirement("R112")
@pytest.mark.parametrize(
    "line",
    [
        "# Discovery Board - issue-gh-1",
        "",
        "   ",
        "{",
        "null",
        "[]",
        '"text"',
        "{}",
        '{"type":"convention"}',
        '{"type":"convention","data":[]}',
        '{"type":"gossip","data":{}}',
        '{"type":["convention"],"data":{}}',
        '{"type":{},"data":{}}',
        '{"type":7,"data":{}}',
        "[" * 100_000,
        '{"type":"convention","data":' + '{"a":' * 100_000,
        "\x00\x01",
    ],
)
def test_a_malformed_line_is_passed_over_and_the_others_are_read(path: Path, line: str) -> None:
    good = '{"ts":"t","worker":"DEV-001","type":"convention","data":{"name":"%s"}}'
    path.write_text(f"{good % 'before'}\n{line}\n{good % 'after'}\n")

    assert found(path) == ["before", "after"]
    assert add(path, convention("new")) == 1


@pytest.mark.requirement("R112")
def test_bytes_that_are_no_text_spoil_only_their_line(path: Path) -> None:
    path.write_bytes(b'\xff\xff\n{"type":"convention","data":{"name":"fine"}}\n')

    assert found(path) == ["fine"]


def test_half_a_line_that_a_killed_writer_left_does_not_swallow_the_next_entry(path: Path) -> None:
    half = b'{"ts":"t","worker":"DEV-001","type":"conv'
    path.write_bytes(half)

    add(path, convention("whole"))

    assert path.read_bytes().startswith(half + b"\n")
    assert found(path) == ["whole"]


def test_a_line_that_only_lacks_its_end_is_read_and_kept(path: Path) -> None:
    path.write_bytes(b'{"type":"convention","data":{"name":"first"}}')

    add(path, convention("second"))

    assert found(path) == ["first", "second"]


@pytest.mark.requirement("R111")
def test_processes_that_add_at_once_lose_nothing(path: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    command = [sys.executable, "-c", ADDER, str(path), str(gate)]
    processes = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for name in "abc"]
    for process in processes:
        assert process.stdout
        process.stdout.readline()

    gate.touch()
    errors = [process.communicate(timeout=60)[1].decode() for process in processes]

    assert errors == ["", "", ""]
    assert {line.data["file"] for line in session_folder_discoveries.read(path)} == {
        f"{name}-{n}.py" for name in "abc" for n in range(50)
    }
    assert len(path.read_text().splitlines()) == 150


def test_a_secret_that_an_agent_wrote_to_the_board_itself_is_removed_in_place(tmp_path: Path) -> None:
    path = tmp_path / session_folder_discoveries.NAME
    clean = '{"type": "convention", "data": {"name": "tabs"}}\n'
    path.write_text(
        f'{clean}{{"type": "convention", "data": {{"hunter2!": "hunter2! ö"}}}}\nhunter2! in no JSON\n{clean}'
    )
    size = path.stat().st_size

    session_folder_discoveries.redact(path, lambda text: text.replace("hunter2!", "[secret]"))

    first, secret, broken, last = path.read_text().splitlines()
    assert json.loads(secret)["data"] == {"[secret]": "[secret] ö"}
    assert (first + "\n", broken.strip(), last + "\n") == (clean, "", clean)
    assert path.stat().st_size == size


def test_a_secret_on_the_board_that_is_shorter_than_its_mask_is_removed_too(tmp_path: Path) -> None:
    path = tmp_path / session_folder_discoveries.NAME
    path.write_text('{"type": "convention", "data": {"name": "abcdef"}}\n')

    session_folder_discoveries.redact(path, lambda text: text.replace("abcdef", "[secret]"))

    assert json.loads(path.read_text())["data"] == {"name": "***"}


def test_a_board_that_an_agent_made_a_link_of_is_not_written_to(tmp_path: Path) -> None:
    other, path = tmp_path / "other", tmp_path / session_folder_discoveries.NAME
    other.write_text("hunter2!\n")
    path.symlink_to(other)

    session_folder_discoveries.redact(path, lambda text: text.replace("hunter2!", "[secret]"))

    assert other.read_text() == "hunter2!\n"


def test_a_line_that_an_agent_is_still_writing_is_left_for_later(tmp_path: Path) -> None:
    path = tmp_path / session_folder_discoveries.NAME
    path.write_text('hunter2!\n{"type": "convention", "data": {"name": "hunter2!')

    session_folder_discoveries.redact(path, lambda text: text.replace("hunter2!", "[secret]"), complete=False)
    later = path.read_text()
    session_folder_discoveries.redact(path, lambda text: text.replace("hunter2!", "[secret]"))

    assert later.split("\n") == [" " * 8, '{"type": "convention", "data": {"name": "hunter2!']
    assert path.read_text().strip() == ""
