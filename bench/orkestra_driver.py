"""Runs independent tasks through Orkestra's own kernel, and prints the seconds they took.

    python -I orkestra_driver.py PROJECT LIVES

It is run by another Python, in which `orkestra-runtime` is installed, the way that package's own demo does it: the
kernel does everything, but the plan is given instead of asked of a model.
"""

import asyncio
import sys
import time
from pathlib import Path

from orkestra.app import build_app
from orkestra.schemas.common import RunState, TaskKind
from orkestra.schemas.task import Assignment, TaskSpec


async def run(project: Path, lives: int) -> float:
    app = build_app(project, offline=True)
    try:
        session = app.store.create_run("bench")
        app.store.set_run_git(session, *await app.workspaces.start_run(session))
        for number in range(lives):
            task = TaskSpec(
                key=f"task-{number}",
                title=f"Write file {number}",
                kind=TaskKind.IMPLEMENT,
                description=f"FAKE:write:task-{number}.txt:task-{number}",
            )
            app.store.add_task(session, task, Assignment(primary="developer", reviewers=["reviewer"]))
        begin = time.perf_counter()
        state = await app.orchestrator.execute(session)
        seconds = time.perf_counter() - begin
    finally:
        app.close()
    if state is not RunState.COMPLETE:
        raise SystemExit(f"Orkestra ended in the state {state}")
    return seconds


if __name__ == "__main__":
    print(asyncio.run(run(Path(sys.argv[1]), int(sys.argv[2]))))
