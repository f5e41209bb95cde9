"""What a task is told of the tasks before it. Made from the table alone, so a restarted run tells it again."""

from iterdev.core.state import State
from iterdev.core.words import Status, TaskId

NOTHING = "No previous context available"


def previous(state: State, task: TaskId) -> str:
    """One line per completed source with findings, or a fixed sentence."""
    lines = []
    for source in state.tasks[task].context_from:
        progress = state.progress[source]
        if progress.status is Status.completed and progress.findings:
            lines.append(f"[Task {source}: {state.tasks[source].title}] {progress.findings}")
    return "\n".join(lines) or NOTHING
