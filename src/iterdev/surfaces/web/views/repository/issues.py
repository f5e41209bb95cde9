"""W16: the issues of the tracker, in a column for each status."""

from iterdev.app.issues import edit, show
from iterdev.app.issues.show import IssueStatus
from iterdev.surfaces.web.page import ActRequest, Done, Page, PageRequest, Part

MOST_CARDS = 100
"""Cards of a column; the newest are shown."""


def page(request: PageRequest) -> Page:
    with request.repository() as repository:
        found = show.issue_list(repository, ",".join(IssueStatus))
    columns = [
        (status, [one for one in reversed(found.issues) if one.status is status][:MOST_CARDS], found.counts[status])
        for status in IssueStatus
    ]
    values = {"columns": columns, "statuses": list(IssueStatus), "may_act": request.may_act}
    return Page(title="Issues", parts=(Part(name="issues", template="issues.html", values=values),), place="issues")


def one(request: PageRequest) -> Page:
    with request.repository() as repository:
        found = show.issue_view(repository, request.arguments["issue"])
    values = {"found": found, "issue": found.issue, "statuses": list(IssueStatus), "may_act": request.may_act}
    part = Part(name="issue", template="issue.html", values=values)
    return Page(title=f"{found.issue.id} {found.issue.description.title}", parts=(part,), place="issues")


def create(request: ActRequest) -> Done:
    fields = {"title": request.fields.get("title", "").strip(), "context": request.fields.get("context", "")}
    with request.repository() as repository:
        made = edit.create(repository, {name: text for name, text in fields.items() if text})
    return Done(what=f"issue create {made.id}", go_to=f"/issues/{made.id}")


def move(request: ActRequest) -> Done:
    name, status = request.arguments["issue"], request.fields.get("status", "")
    with request.repository() as repository:
        edit.update(repository, name, edit.IssueFields(status=status))
    return Done(what=f"issue update {name} --status {status}", go_to="/issues")
