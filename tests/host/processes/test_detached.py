"""Programs that outlive the one that started them."""

import sys
from pathlib import Path

from tests.e2e.conftest import eventually

from iterdev.host.processes import detached


def test_a_program_has_a_process_session_of_its_own_and_leaves_its_output_in_a_file(tmp_path: Path) -> None:
    output = tmp_path / "logs" / "said.log"
    code = "import os, sys; print(os.getsid(0) == os.getpid(), sys.stdin.read() == '', os.getcwd())"

    process = detached.start([sys.executable, "-c", code], cwd=tmp_path, output=output)
    process.wait()

    assert output.read_text() == f"True True {tmp_path}\n"


def test_a_program_that_has_ended_is_no_zombie(tmp_path: Path) -> None:
    pid = detached.start(["true"], cwd=tmp_path, output=tmp_path / "said.log").pid

    eventually(lambda: not Path(f"/proc/{pid}").exists(), "the end of the zombie")
