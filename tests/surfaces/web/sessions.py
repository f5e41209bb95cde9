"""Sessions for pages to show: one that asks, one that was reviewed, and one whose every text is hostile."""

import json

import msgspec
from tests.app.conftest import DEV, Sessions

from iterdev.app import feedback, tech_debt
from iterdev.app.issues.edit import create
from iterdev.core.collaboration.messages import MessageSent
from iterdev.core.collaboration.wisdom import WisdomNoted, note
from iterdev.core.results import Usage
from iterdev.core.session import events
from iterdev.core.session.gates import plan_gate
from iterdev.core.types import SessionId, Severity, Status, TaskId
from iterdev.core.verification import Verification
from iterdev.teams.development.events import ReviewScored, TestsMeasured
from iterdev.teams.development.results import Finding, Review, Scores
from iterdev.teams.development.roles import Signal

HOSTILE = "<script>window.ran=1</script><img src=x onerror=window.ran=1>'\"{{7*7}}\x1b]8;;javascript:x\x07\u202e&"


def asking(sessions: Sessions, requirement: str = "Fix it") -> SessionId:
    session = sessions.start(requirement)
    sessions.log(session).record(events.GateOpened(plan_gate(sessions.state(session).tasks.plan.values())))
    return session


def reviewed(sessions: Sessions, requirement: str = "Fix it") -> SessionId:
    """A session whose work has landed on its branch, with a review."""
    session = sessions.start(requirement)
    repo = sessions.repo
    repo.git("switch", "-q", f"iterdev/{session}")
    repo.write("till.py", "def total(cart):\n    return 'all'\n")
    repo.write("<img src=x onerror=window.ran=1>.py", "'<script>window.ran=1</script>'\n")
    repo.write("yarn.lock", "x\n" * 50)
    tip = repo.commit("work")
    repo.git("switch", "-q", "main")
    base = repo.git("rev-parse", "main")
    scores = Scores(correctness=4, completeness=6, maintainability=8, security=7)
    wrong = Finding(severity="high", description=f"wrong {HOSTILE}", file="till.py", line="2-3", dimension="security")
    far = Finding(severity="low", description="far away", file="till.py", line=99)
    review = Review(id="REVIEW-001", status="completed", scores=scores, issues=(wrong, far))
    row = msgspec.structs.replace(sessions.state(session).tasks.plan[DEV], id=TaskId("REVIEW-001"), role="reviewer")
    sessions.log(session).record(
        events.TasksAdded((row,)),
        events.AttemptStarted(DEV, 1, "mine", base),
        events.AttemptEnded(
            task=DEV,
            number=1,
            agent="mine",
            requests=1,
            outcome=events.Done(findings="done", commit=tip, changed=("till.py",), usage=Usage(input_tokens=1200)),
            status=Status.landing,
        ),
        events.Landed(task=DEV, tip=tip, changed=("till.py",), status=Status.completed),
        ReviewScored(
            task=TaskId("REVIEW-001"), review=review, score=6.1, signal=Signal.revision_needed, grade=Severity.high
        ),
    )
    return session


def hostile(sessions: Sessions) -> tuple[SessionId, str]:
    """A session and an issue in which every text that others can write is an attack."""
    session = reviewed(sessions, f"Fix it {HOSTILE}")
    log = sessions.log(session)
    gate = events.Gate(kind="plan", question=HOSTILE, choices=("approve", HOSTILE), subject="")
    tests = Verification(
        command=HOSTILE,
        pass_rate=0.5,
        total=2,
        failures=(HOSTILE,),
        regressions=(HOSTILE,),
        note=HOSTILE,
        output=HOSTILE,
    )
    learned = note("learnings", HOSTILE, session=session, task=HOSTILE, commit=HOSTILE, at=1.0)
    log.record(
        events.GateOpened(gate),
        events.Warned(HOSTILE),
        events.AttemptStarted(TaskId("VERIFY-001"), 1, HOSTILE, "b" * 40),
        events.AttemptEnded(
            task=TaskId("VERIFY-001"),
            number=1,
            agent=HOSTILE,
            requests=1,
            outcome=events.Failed(error=HOSTILE),
            status=Status.failed,
            error=HOSTILE,
            denied=(HOSTILE,),
        ),
        TestsMeasured(task=TaskId("VERIFY-001"), verification=tests, failed=True),
        WisdomNoted((learned,)),
        MessageSent(
            sender=HOSTILE, to=HOSTILE, kind=HOSTILE, summary=HOSTILE, data={"task": "DEV-001", HOSTILE: HOSTILE}
        ),
    )
    repository = sessions.repository
    issue = create(repository, {"title": HOSTILE, "context": HOSTILE, "tags": [HOSTILE]}).id
    feedback.add(repository, session, HOSTILE, severity="high", category="bug")
    tech_debt.add(repository, session, tech_debt.Debt(description=HOSTILE))
    folder = repository.folder(sessions.state(session))
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs" / "DEV-001-1.log").write_text(f"{HOSTILE}\n" * 3)
    line = {"type": "odd", "worker": HOSTILE, "data": {HOSTILE: [HOSTILE]}}
    (folder / "discoveries.ndjson").write_text(json.dumps(line))
    return session, issue
