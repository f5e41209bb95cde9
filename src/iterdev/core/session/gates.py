"""Questions that somebody of the team raises while it works: go on, or stop here."""

from collections.abc import Mapping

from iterdev.core.session.events import Finished, Gate, GateAnswered, MessageSent

GO_ON, STOP = "go-on", "stop"


def gate_of(kind: str, message: MessageSent) -> str:
    """One question for each task, or for whoever else said it."""
    return f"{kind}{message.task or message.sender}"


def gate(name: str, statement: str) -> Gate:
    return Gate(id=name, question=f"{statement} Go on, or stop here?", choices=(GO_ON, STOP))


def stopped(kind: str, why: str, answers: Mapping[str, str]) -> tuple[GateAnswered, Finished] | None:
    """The end of the session, where somebody chose it; whoever resumes it takes it up again."""
    for name, choice in answers.items():
        if name.startswith(kind) and choice == STOP:
            return GateAnswered(name, ""), Finished(f"{why} ({name.removeprefix(kind)})")
    return None
