"""The audit of solutions: scores and verdicts, which iterdev computes from what the reviewer says."""

import math
from collections.abc import Sequence

from iterdev.core.types import TaskId
from iterdev.teams.issues.events import AuditScored, IssueVerdict, Thresholds
from iterdev.teams.issues.results import Audit, IssueAudit
from iterdev.teams.issues.roles import Verdict

WEIGHTS = {"technical_feasibility": 40, "risk_assessment": 30, "completeness": 30}
"""Per cent of the whole score."""
ORDER = (Verdict.rejected, Verdict.concerns, Verdict.approved)
"""The worst first."""


def total(audit: IssueAudit) -> int:
    """The weighted sum of the dimensions, rounded; half a point counts as one."""
    weighted: float = sum(getattr(audit, name).score * weight for name, weight in WEIGHTS.items())
    return math.floor(round(weighted / 100, 6) + 0.5)


def verdict(score: int, thresholds: Thresholds) -> Verdict:
    if score >= thresholds.approved:
        return Verdict.approved
    return Verdict.concerns if score >= thresholds.concerns else Verdict.rejected


def scored(task: TaskId, audit: Audit, thresholds: Thresholds, before: Sequence[IssueVerdict] = ()) -> AuditScored:
    """The verdict on every issue, and that of the worst; issues that the audit leaves out keep the one from before."""
    new = {one.issue_id: _verdict_on(one, thresholds) for one in audit.audits}
    verdicts = tuple(({one.issue_id: one for one in before} | new).values())
    mean = sum(one.score for one in verdicts) / len(verdicts)
    overall = min((one.verdict for one in verdicts), key=ORDER.index)
    return AuditScored(task=task, audit=audit, verdicts=verdicts, score=math.floor(mean + 0.5), verdict=overall)


def _verdict_on(one: IssueAudit, thresholds: Thresholds) -> IssueVerdict:
    score = total(one)
    return IssueVerdict(
        issue_id=one.issue_id, solution_id=one.solution_id, score=score, verdict=verdict(score, thresholds)
    )


def rejected(found: AuditScored) -> tuple[str, ...]:
    """The issues whose solutions were rejected."""
    return tuple(one.issue_id for one in found.verdicts if one.verdict is Verdict.rejected)


def objections(found: AuditScored) -> tuple[str, ...]:
    """Why solutions were rejected, one sentence each: what the reviewer gives as reasons, or else the findings."""
    names = set(rejected(found))
    audits = (one for one in found.audit.audits if one.issue_id in names)
    findings = tuple(
        f"{one.issue_id}: {text}" for one in audits for name in WEIGHTS for text in getattr(one, name).texts
    )
    return found.audit.rejection_reasons or findings or tuple(f"{name}: the score is too low" for name in names)
