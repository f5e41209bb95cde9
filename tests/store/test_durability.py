"""What is on the disk when a call returns. Only the system calls can show it, short of cutting the power."""

import subprocess
import sys
from pathlib import Path

APPEND = """
import sys
from pathlib import Path
from tests.store.conftest import started
from iterdev.core.session.events import Entry, Warned
from iterdev.store.journal import Journal

journal = Journal(Path(sys.argv[1]) / "iterdev.db")
journal.append("demo", [Entry(1, 1.0, started("demo"))], after=0)
print("begin", flush=True)
for number in range(2, 7):
    journal.append("demo", [Entry(number, 1.0, Warned("x"))], after=number - 1)
print("end", flush=True)
"""
WRITE = """
import sys
from pathlib import Path
from iterdev.store import atomic_files

print("begin", flush=True)
atomic_files.write(Path(sys.argv[1]) / "file", "text", durable={durable})
print("end", flush=True)
"""


def system_calls(script: str, folder: Path) -> list[str]:
    """The names of the calls that concern the disk, between the two words that the script prints."""
    trace = folder / "trace"
    calls = "trace=write,fsync,fdatasync,rename,renameat,renameat2"
    command = ["strace", "-f", "-qq", "-e", calls, "-o", trace, sys.executable, "-c", script, folder]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert done.stdout.split() == ["begin", "end"], done.stderr
    lines = trace.read_text(encoding="utf-8", errors="replace").splitlines()
    (begin,) = (place for place, line in enumerate(lines) if 'write(1, "begin' in line)
    (end,) = (place for place, line in enumerate(lines) if 'write(1, "end' in line)
    return [line.split(maxsplit=1)[1].partition("(")[0] for line in lines[begin + 1 : end]]


def test_an_entry_is_on_the_disk_when_it_has_been_appended(tmp_path: Path) -> None:
    calls = system_calls(APPEND, tmp_path)

    assert sum(call in {"fsync", "fdatasync"} for call in calls) >= 5


def test_a_durable_file_is_on_the_disk_before_it_replaces_the_old_one(tmp_path: Path) -> None:
    calls = system_calls(WRITE.format(durable=True), tmp_path)

    order = [call for call in calls if call == "fsync" or call.startswith("rename")]
    assert [call.rstrip("at2") for call in order] == ["fsync", "rename"]


def test_a_file_that_can_be_made_again_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    assert "fsync" not in system_calls(WRITE.format(durable=False), tmp_path)
