"""The application: every address with the function that makes its page, or that does what its form asks for."""

import traceback
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec
from anyio import to_thread
from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Match, Mount, Route
from starlette.staticfiles import StaticFiles

from iterdev.app import inspect
from iterdev.app.live.web_server import ActLog
from iterdev.core.errors import HostError, IterdevError, NeedsConfirmation
from iterdev.core.types import SessionId
from iterdev.core.views.session import session_document
from iterdev.surfaces.web import guard
from iterdev.surfaces.web.credentials import Credentials, Locked, TooManyStreams
from iterdev.surfaces.web.page import (
    Act,
    ActRequest,
    MakeFile,
    MakePage,
    Moved,
    NoSuchPage,
    Page,
    PageRequest,
    Part,
    Unfit,
)
from iterdev.surfaces.web.rendering import FOLDER, Rendered, document, render, render_text
from iterdev.surfaces.web.stream import Stream
from iterdev.surfaces.web.views.repository import boards, costs, issues, needs, new_session, sessions
from iterdev.surfaces.web.views.session import (
    changes,
    collaboration,
    cost,
    documents,
    journal,
    output,
    pipeline,
    plan,
    preview,
    question,
    review,
    task,
    tests,
    timeline,
)
from iterdev.surfaces.web.watching import Watching

PAGES: Mapping[str, MakePage] = {
    "/": needs.page,
    "/sessions": sessions.page,
    "/new": new_session.page,
    "/s/{session}": pipeline.page,
    "/s/{session}/timeline": timeline.page,
    "/s/{session}/t/{task}": task.page,
    "/s/{session}/t/{task}/output": output.page,
    "/s/{session}/t/{task}/prompt": task.prompt,
    "/s/{session}/output": output.together,
    "/s/{session}/changes": changes.page,
    "/s/{session}/review": review.page,
    "/s/{session}/tests": tests.page,
    "/s/{session}/documents": documents.page,
    "/s/{session}/cost": cost.page,
    "/s/{session}/locks": collaboration.locks,
    "/s/{session}/bus": collaboration.bus,
    "/s/{session}/board": collaboration.board,
    "/s/{session}/plan": plan.page,
    "/s/{session}/journal": journal.page,
    boards.FEEDBACK: boards.feedback_board,
    boards.DEBT: boards.debt_board,
    boards.WISDOM: boards.wisdom_board,
    "/issues": issues.page,
    "/issues/{issue}": issues.one,
    "/cost": costs.page,
    "/s/{session}/q/{gate}": question.page,
    "/s/{session}/do/{act}": preview.page,
}
FILES: Mapping[str, MakeFile] = {
    "/s/{session}/journal.jsonl": journal.download,
    "/s/{session}/t/{task}/output.log": output.download,
}
ACTS: Mapping[str, Act] = {
    "/new": new_session.begin,
    "/s/{session}/plan": plan.save,
    "/s/{session}/comment": changes.comment,
    "/s/{session}/bus": collaboration.broadcast,
    boards.FEEDBACK: boards.change_feedback,
    boards.DEBT: boards.change_debt,
    boards.WISDOM: boards.reject_wisdom,
    "/issues": issues.create,
    "/issues/{issue}": issues.move,
    "/s/{session}/q/{gate}": question.answer,
    "/s/{session}/do/{act}": preview.carry_out,
}
COOKIE = "iterdev-{port}"
MOST_FIELDS = 10_000
"""Fields of a form: a plan of a thousand tasks has as many."""


class Application:
    def __init__(
        self,
        watching: Watching,
        credentials: Credentials,
        log: ActLog,
        *,
        port: int,
        names: tuple[str, ...] = (),
        read_only: bool = False,
    ) -> None:
        self._watching, self._credentials, self._log = watching, credentials, log
        self._cookie, self._may_act = COOKIE.format(port=port), not read_only
        self.stream = Stream(watching.look, self._render, watching.has_news)
        acts = () if read_only else (Route(path, self._act, methods=["POST"]) for path in ACTS)
        self._pages = [Route(path, self._page, methods=["GET"]) for path in PAGES]
        routes = [
            *self._pages,
            *(Route(path, self._file, methods=["GET"]) for path in FILES),
            *acts,
            Route(guard.LOGIN, self._log_in, methods=["POST"]),
            Route("/events", self._events, methods=["GET"]),
            Route("/api/sessions", self._api_sessions, methods=["GET"]),
            Route("/api/s/{session}", self._api_session, methods=["GET"]),
            Mount(guard.STATIC.rstrip("/"), StaticFiles(directory=FOLDER / "static")),
        ]
        errors = {HTTPException: self._http_error, Exception: self._defect}
        inner = Starlette(routes=routes, exception_handlers=errors)
        inner.router.redirect_slashes = False
        self.routes = inner.routes
        hosts = guard.own_hosts(port, names)
        # Around everything, so that a page about an error has the headers too.
        self.app = guard.Guard(inner, hosts=hosts, cookie=self._cookie, credentials=credentials)

    async def _page(self, request: Request) -> Response:
        if request.scope[guard.BROWSER] is None:
            return HTMLResponse(render_text("login.html"))
        asked = self._asked(request.url.path, request.query_params, request.path_params)
        return await to_thread.run_sync(self._answered, request.scope["route"].path, asked)

    def _answered(self, path: str, asked: PageRequest) -> Response:
        try:
            rendered = render(PAGES[path](asked), asked)
        except NoSuchPage as missing:
            return self._error_page(asked, HTTPStatus.NOT_FOUND, str(missing))
        except IterdevError as error:
            status = HTTPStatus.SERVICE_UNAVAILABLE if isinstance(error, HostError) else HTTPStatus.NOT_FOUND
            return self._error_page(asked, status, error.message, error.hint)
        return HTMLResponse(document(rendered, asked), status_code=rendered.page.status)

    async def _file(self, request: Request) -> Response:
        asked = self._asked(request.url.path, request.query_params, request.path_params)
        return await to_thread.run_sync(self._downloaded, request.scope["route"].path, asked)

    def _downloaded(self, path: str, asked: PageRequest) -> Response:
        try:
            file = FILES[path](asked)
        except (NoSuchPage, IterdevError) as error:
            return PlainTextResponse(f"{error}\n", status_code=HTTPStatus.NOT_FOUND)
        disposition = f"attachment; filename*=utf-8''{quote(file.name, safe='')}"
        return PlainTextResponse(file.text.encode("utf-8", "replace"), headers={"content-disposition": disposition})

    def _error_page(self, asked: PageRequest, status: HTTPStatus, text: str, hint: str = "") -> Response:
        part = Part(name="error", template="error.html", values={"text": text, "hint": hint})
        page = Page(title=status.phrase, parts=(part,), status=status, is_live=False)
        return HTMLResponse(document(render(page, asked), asked), status_code=status)

    def _asked(self, path: str, query: QueryParams, arguments: Mapping[str, str]) -> PageRequest:
        address = f"{path}?{query}" if query else path
        return PageRequest(
            watching=self._watching,
            path=address,
            arguments=arguments,
            query=dict(query),
            may_act=self._may_act,
        )

    def _render(self, address: str) -> Rendered:
        """Renders the page of an address, for the stream."""
        parts = urlsplit(address)
        scope = {"type": "http", "method": "GET", "path": parts.path, "root_path": "", "headers": []}
        own = () if parts.scheme or parts.netloc else self._pages
        for route in own:
            match, found = route.matches(scope)
            if match is Match.FULL:
                asked = self._asked(parts.path, QueryParams(parts.query), found["path_params"])
                return render(PAGES[route.path](asked), asked)
        raise NoSuchPage(f'There is no page "{address}"')

    async def _events(self, request: Request) -> Response:
        view, mark = request.query_params.get("view", ""), request.query_params.get("mark", "")
        try:
            await to_thread.run_sync(self._render, view)
        except (NoSuchPage, IterdevError, ValueError) as error:
            return PlainTextResponse(f"{error}\n", status_code=HTTPStatus.NOT_FOUND)
        streams = self._credentials.stream_of(request.scope[guard.BROWSER])
        try:
            streams.__enter__()
        except TooManyStreams:
            return PlainTextResponse("too many streams\n", status_code=HTTPStatus.TOO_MANY_REQUESTS)

        async def messages() -> AsyncIterator[str]:
            try:
                async for message in self.stream.listen(view, mark):
                    yield message
            finally:
                streams.__exit__(None, None, None)

        return StreamingResponse(messages(), media_type="text/event-stream")

    async def _act(self, request: Request) -> Response:
        path, who = request.scope["route"].path, request.scope[guard.BROWSER]
        fields = await _fields(request)
        asked = ActRequest(watching=self._watching, arguments=request.path_params, fields=fields)
        return await to_thread.run_sync(self._acted, path, asked, who)

    def _acted(self, path: str, asked: ActRequest, who: str) -> Response:
        try:
            done = ACTS[path](asked)
        except NoSuchPage as missing:
            return JSONResponse({"error": str(missing)}, HTTPStatus.NOT_FOUND)
        except Moved as moved:
            return JSONResponse({"error": str(moved), "look_again": True}, HTTPStatus.CONFLICT)
        except Unfit as unfit:
            answer = {"error": unfit.error.message, "hint": unfit.error.hint, "row": unfit.row}
            return JSONResponse(answer, HTTPStatus.BAD_REQUEST)
        except IterdevError as error:
            status = HTTPStatus.CONFLICT if isinstance(error, NeedsConfirmation) else HTTPStatus.BAD_REQUEST
            status = HTTPStatus.SERVICE_UNAVAILABLE if isinstance(error, HostError) else status
            self._log.write("refused", who, **asked.arguments, error=error.message)
            return JSONResponse({"error": error.message, "hint": error.hint}, status)
        self._log.write(done.what, who, **asked.arguments)
        return JSONResponse({"go_to": done.go_to})

    async def _log_in(self, request: Request) -> Response:
        token = (await _fields(request)).get("token", "")
        try:
            cookie = self._credentials.log_in(token)
        except Locked:
            return JSONResponse({"error": "too many wrong tokens; wait a minute"}, HTTPStatus.TOO_MANY_REQUESTS)
        if cookie is None:
            self._log.write("wrong token")
            return JSONResponse({"error": "the token is wrong"}, HTTPStatus.FORBIDDEN)
        self._log.write("login", self._credentials.browser_of(cookie) or "")
        response = Response(status_code=HTTPStatus.NO_CONTENT)
        response.set_cookie(self._cookie, cookie, httponly=True, samesite="strict", path="/")
        return response

    def _api_sessions(self, _: Request) -> Response:
        with self._watching.repository() as repository:
            views = [inspect.status(repository, session) for session in repository.sessions()]
        return _document({"sessions": list(map(session_document, views))})

    def _api_session(self, request: Request) -> Response:
        name = request.path_params["session"]
        if name not in self._watching.names():
            return JSONResponse({"error": f'There is no session "{name}"'}, HTTPStatus.NOT_FOUND)
        with self._watching.repository() as repository:
            return _document(session_document(inspect.status(repository, SessionId(name))))

    async def _http_error(self, _: Request, error: Exception) -> Response:
        status = HTTPStatus(error.status_code if isinstance(error, HTTPException) else 500)
        return PlainTextResponse(f"{status.phrase}\n", status_code=status)

    async def _defect(self, request: Request, error: Exception) -> Response:
        """A defect of iterdev: the log has where it happened, and the page does not."""
        self._log.write("defect", path=request.url.path, error="".join(traceback.format_exception(error)))
        text = f"This is a defect of iterdev; please report it with {self._log.path}\n"
        return PlainTextResponse(text, status_code=HTTPStatus.INTERNAL_SERVER_ERROR)


def _document(document: object) -> Response:
    """What `--json` prints."""
    return Response(msgspec.json.encode(document), media_type="application/json")


async def _fields(request: Request) -> dict[str, str]:
    """The fields of a form; a larger one than is allowed is not read to its end."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > guard.MOST_BODY:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    except ClientDisconnect:
        raise HTTPException(HTTPStatus.BAD_REQUEST) from None
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except (UnicodeDecodeError, ValueError):
        raise HTTPException(HTTPStatus.BAD_REQUEST) from None
    return dict(pairs)
