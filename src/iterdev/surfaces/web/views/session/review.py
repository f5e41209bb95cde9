"""W7: the reviews with their scores, and every finding from its first to its last round."""

from iterdev.surfaces.web.page import Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page


def page(request: PageRequest) -> Page:
    with request.session() as watched:
        view, reviews, found = watched.view(room=0), watched.reviews(), watched.findings()
    values = {
        "view": view,
        "reviews": reviews,
        "dimensions": list(dict.fromkeys(name for one in reviews for name, _ in one.scores)),
        "open": [one for one in found if one.fixed_in is None],
        "fixed": [one for one in found if one.fixed_in is not None],
    }
    return session_page(request, view, "review", "Review", Part(name="review", template="review.html", values=values))
