"""W7: the reviews with their scores, and every finding from its first to its last round."""

from collections.abc import Sequence

from iterdev.core.types import TaskId
from iterdev.core.views.team import FindingView
from iterdev.surfaces.web.page import Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page


def page(request: PageRequest) -> Page:
    with request.session() as watched:
        view, reviews, found = watched.view(room=0), watched.reviews(), watched.findings()
    order = [one.task for one in reviews]
    values = {
        "view": view,
        "reviews": reviews,
        "dimensions": list(dict.fromkeys(name for one in reviews for name, _ in one.scores)),
        "open": [one for one in found if one.fixed_in is None],
        "fixed": [one for one in found if one.fixed_in is not None],
        "came_back": {one.id for one in found if _came_back(one, order)},
    }
    return session_page(request, view, "review", "Review", Part(name="review", template="review.html", values=values))


def _came_back(finding: FindingView, reviews: Sequence[TaskId]) -> bool:
    """Whether a review between two that report it did not."""
    places = [reviews.index(task) for task in finding.reported_by if task in reviews]
    return bool(places) and places[-1] - places[0] >= len(places)
