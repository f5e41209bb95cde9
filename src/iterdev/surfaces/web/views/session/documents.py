"""The artifacts of a session: the report, designs, reviews, test runs, and whatever else its team wrote."""

from iterdev.surfaces.web.page import Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page

LONGEST = 500_000
"""Characters of a document that are shown."""


def page(request: PageRequest) -> Page:
    name = request.query.get("name", "")
    with request.session() as watched:
        view, found = watched.view(room=0), watched.documents()
    if name and name not in found:
        request.missing(f'There is no document "{name}"')
    text = found.get(name, "")
    values = {"view": view, "names": list(found), "name": name, "text": text[:LONGEST], "is_cut": len(text) > LONGEST}
    part = Part(name="documents", template="documents.html", values=values)
    return session_page(request, view, "documents", "Documents", part)
