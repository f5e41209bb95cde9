"""W8: the runs of the tests, what failed in which of them, and what they printed."""

from iterdev.surfaces.web.page import Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page

MOST_TESTS = 500
"""Tests that failed in some run and are listed."""


def page(request: PageRequest) -> Page:
    with request.session() as watched:
        view, runs = watched.view(room=0), watched.test_runs()
    names = list(dict.fromkeys(name for run in runs for name in (*run.failures, *run.missing)))
    values = {"view": view, "runs": runs, "names": names[:MOST_TESTS], "more": max(len(names) - MOST_TESTS, 0)}
    return session_page(request, view, "tests", "Tests", Part(name="tests", template="tests.html", values=values))
