"""The page's server, for one person at one machine: who may ask, what may be asked, and nothing else."""

import hmac
import json
import logging
import os
import secrets
import socket
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio.to_thread
import uvicorn
from jinja2 import Environment, FileSystemLoader
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

import sylvan.pages
from sylvan.app.review.session import DECISIONS, Conflict, Order, Session
from sylvan.exceptions import DecisionError

_LOG = logging.getLogger(__name__)
_HERE = Path(__file__).parent
_LARGEST_BODY = 64 * 1024
_FIRST_PORT, _N_PORTS = 49152, 16384  # those that belong to nobody
_STATIC = {
    "review.js": (_HERE / "static" / "review.js", "text/javascript"),
    "review.css": (_HERE / "static" / "review.css", "text/css"),
    "favicon.svg": (_HERE / "static" / "favicon.svg", "image/svg+xml"),
    "style.css": (Path(str(sylvan.pages.__file__)).parent / "style.css", "text/css"),
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_EXPIRED = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Review</title><h1>This page has expired</h1>'
    "<p>Use the link that <code>sylvan review</code> printed, or start it again. All decisions are safe.</p></html>"
)
# A link on another site brings no strict cookie along; asked again by a page of our own, the browser sends it.
_AGAIN = '<!DOCTYPE html><html lang="en"><meta http-equiv="refresh" content="0; url=/"><title>Review</title></html>'


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Gate:
    """Lets through what comes from this machine's page alone, and puts headers on all that leaves."""

    def __init__(self, app: Any, port: int, token: str) -> None:
        self.app, self.token, self.cookie = app, token, f"sylvan-review-{port}"
        self.secret = secrets.token_urlsafe(32)
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            return

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
                message = message | {"headers": [*message.get("headers", []), *extra]}
            await send(message)

        answer = self._refusal(Request(scope)) or self.app
        await answer(scope, receive, send_guarded)

    def _refusal(self, request: Request) -> Response | None:
        if request.headers.get("host", "").lower() not in self.hosts:
            return _error(403, "This address is not served.")
        given = request.query_params.get("token")
        if request.url.path == "/" and request.method == "GET" and given is not None:
            if not _same(given, self.token):
                return HTMLResponse(_EXPIRED, 403)
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self.cookie, self.secret, httponly=True, samesite="strict", path="/")
            return answer
        if not _same(request.cookies.get(self.cookie, ""), self.secret):
            if request.url.path != "/":
                return _error(401, "This page has expired: use the link that `sylvan review` printed, or start it "
                                   "again. All decisions are safe.")  # fmt: skip
            from_afar = request.headers.get("sec-fetch-site") == "cross-site"
            return HTMLResponse(_AGAIN) if from_afar else HTMLResponse(_EXPIRED, 403)
        if request.method not in ("GET", "HEAD"):
            site = request.headers.get("sec-fetch-site", "same-origin")
            if request.headers.get("origin") != f"http://{request.headers['host']}" or site != "same-origin":
                return _error(403, "Only the page itself may ask for this.")
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                return _error(415, "This must be JSON.")
        return None


def _same(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


def _json(data: Any, status: int = 200) -> Response:
    return Response(json.dumps(data, allow_nan=False), status, media_type="application/json")


def _error(status: int, text: str) -> Response:
    return _json({"error": text}, status)


async def _body(request: Request) -> dict[str, Any]:
    """Read a request that is an object of JSON, and not too large."""
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > _LARGEST_BODY:
            raise Refused(413, "This is too large.")
    try:
        found = json.loads(data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise Refused(400, "This is not JSON.") from None
    if not isinstance(found, dict):
        raise Refused(400, "This must be an object.")
    return found


def _refuse_constant(text: str) -> None:
    raise ValueError(text)


def _order(session: Session, by: Any, label: Any, row: Any) -> Order:
    """Read which cells are wanted first."""
    if by not in ("value", "probability"):
        raise Refused(400, "by must be 'value' or 'probability'.")
    for name, number, n in (("label", label, len(session.labels)), ("row", row, len(session.rows))):
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < n):
            raise Refused(400, f"There is no {name} of this number.")
    return Order(by, label, row)


def _order_of_query(session: Session, request: Request) -> Order:
    given = request.query_params
    numbers: dict[str, Any] = {}
    for name in ("label", "row"):
        text = given.get(name, "")
        is_number = text.isascii() and text.isdigit() and len(text) < 16
        numbers[name] = None if text in ("", "null") else int(text) if is_number else text
    return _order(session, given.get("by") or "value", **numbers)


def _order_of_body(session: Session, body: dict[str, Any]) -> Order:
    order = body.get("order") or {}
    if not isinstance(order, dict):
        raise Refused(400, "order must be an object.")
    return _order(session, order.get("by") or "value", order.get("label"), order.get("row"))


def _guarded(work: Callable[[Request], Any]) -> Callable[[Request], Any]:
    """Turn what goes wrong into a sentence."""

    async def endpoint(request: Request) -> Response:
        try:
            answer: Response = await work(request)
            return answer
        except Refused as error:
            return _error(error.status, str(error))
        except DecisionError as error:
            return _error(409, str(error))
        except OSError as error:
            what = f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
            return _error(507, f"This could not be written: {what}. What was decided before is safe.")
        except ValueError as error:
            return _error(400, str(error))
        except Exception:
            _LOG.exception("A request failed")
            return _error(500, "Something went wrong here. What was decided is safe.")

    return endpoint


class Acts:
    """What a page may ask for, by the body of its request."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.all = {
            "decide": self._decide, "withdraw": self._withdraw, "show": self._show, "audit": self._audit,
            "refit": self._refit,
        }  # fmt: skip

    def answer(self, name: str, body: dict[str, Any]) -> Response:
        """Do it once, however often it is asked for, and return the state."""
        session, order = self.session, _order_of_body(self.session, body)
        try:
            session.once(body.get("id"), lambda: self.all[name](body, order))
        except Conflict as conflict:
            session.show(order, conflict.cell)
            return _json(session.state(order, str(conflict)), 409)
        return _json(session.state(order))

    def _decide(self, body: dict[str, Any], order: Order) -> None:
        if body.get("decision") not in DECISIONS:
            raise Refused(400, "decision must be confirmed, rejected or unsure.")
        self.session.decide(body.get("cell"), body["decision"], body.get("was"))

    def _withdraw(self, body: dict[str, Any], order: Order) -> None:
        self.session.decide(body.get("cell"), "withdrawn", body.get("was"))
        self.session.show(order, self.session.find(body.get("cell")))

    def _show(self, body: dict[str, Any], order: Order) -> None:
        self.session.show(order, None if body.get("cell") is None else self.session.find(body["cell"]))

    def _audit(self, body: dict[str, Any], order: Order) -> None:
        n, precision = body.get("n"), body.get("precision")
        if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 100_000:
            raise Refused(400, "n must be a whole number from 1 to 100,000.")
        if precision is not None and not (isinstance(precision, float) and 0 < precision < 1):
            raise Refused(400, "precision must be a number between 0 and 1.")
        self.session.draw(n, precision)

    def _refit(self, body: dict[str, Any], order: Order) -> None:
        self.session.refit()


def make_app(session: Session, finish: Callable[[], dict[str, Any]] | None = None) -> Starlette:
    """Return the application without its gate."""
    templates, acts = Environment(loader=FileSystemLoader(_HERE / "templates"), autoescape=True), Acts(session)

    def posting(name: str) -> Callable[[Request], Any]:
        async def work(request: Request) -> Response:
            return await anyio.to_thread.run_sync(acts.answer, name, await _body(request))

        return _guarded(work)

    def finished(body: dict[str, Any]) -> Response:
        if finish is None:
            raise Refused(400, "There is nothing to write.")
        order = _order_of_body(session, body)
        session.finished = finish()
        return _json(session.state(order))

    async def finishing(request: Request) -> Response:
        return await anyio.to_thread.run_sync(finished, await _body(request))

    async def page(request: Request) -> Response:
        return HTMLResponse(templates.get_template("review.html").render(title=session.title))

    async def state(request: Request) -> Response:
        order = _order_of_query(session, request)
        return _json(await anyio.to_thread.run_sync(session.state, order))

    async def image(request: Request) -> Response:
        column, row = (request.path_params[name] for name in ("column", "row"))
        found = await anyio.to_thread.run_sync(session.viewer.picture, column, row)
        return _error(404, "There is no picture here.") if found is None else Response(found[0], media_type=found[1])

    routes = [
        Route("/", _guarded(page)),
        Route("/static/{name}", _guarded(_static)),
        Route("/api/state", _guarded(state)),
        Route("/image/{column:int}/{row:int}", _guarded(image)),
        Route("/api/finish", _guarded(finishing), methods=["POST"]),
        *(Route(f"/api/{name}", posting(name), methods=["POST"]) for name in acts.all),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _nothing, 405: _nothing})
    app.router.redirect_slashes = False
    return app


async def _static(request: Request) -> Response:
    path, kind = _STATIC.get(request.path_params["name"], (None, ""))
    if path is None or not path.is_file():
        return _error(404, "There is nothing here.")
    return Response(path.read_bytes(), media_type=kind)


async def _nothing(request: Request, error: Exception) -> Response:
    return _error(getattr(error, "status_code", 404), "There is nothing here.")


class Server:
    """A running page; `url` has the token in it.

    Parameters
    ----------
    session : what is reviewed; it ends with the server
    port : 0: one that follows from the file of decisions, or any other that is free
    finish : writes the results, and says where
    """

    def __init__(self, session: Session, port: int = 0, finish: Callable[[], dict[str, Any]] | None = None) -> None:
        self.session = session
        self._socket = _bind(port) if port else _bind_usual(session.ledger.store.path)
        self._socket.listen()  # from now on, for the link may be followed before the thread has started
        self.port = self._socket.getsockname()[1]
        token = secrets.token_urlsafe(32)
        self.url = f"http://127.0.0.1:{self.port}/?token={token}"
        self.gate = Gate(make_app(session, finish), self.port, token)
        how: dict[str, Any] = {"access_log": False, "log_level": "warning", "lifespan": "off", "server_header": False}
        self._server = uvicorn.Server(uvicorn.Config(self.gate, ws="none", timeout_graceful_shutdown=2, **how))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(SystemExit):
            self._server.run(sockets=[self._socket])

    def wait(self) -> None:
        """Return when the server has ended."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def stop(self) -> None:
        """End the server; all decisions are stored."""
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()
        self.session.close()


def _bind(port: int) -> socket.socket:
    """Return a socket that this machine alone can reach."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name != "nt":  # there it would let two servers have one port
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(("127.0.0.1", port))
    except OSError as error:
        found.close()
        raise OSError(error.errno, f"{error.strerror}; choose another one, or none", f"port {port}") from error
    return found


def _bind_usual(path: Path) -> socket.socket:
    """Return a socket on the port that belongs to a file: a page that is still open goes on after a restart."""
    usual = _FIRST_PORT + zlib.crc32(str(path.resolve()).encode(errors="replace")) % _N_PORTS
    with suppress(OSError):
        return _bind(usual)
    return _bind(0)


def check_port(port: int) -> None:
    """Refuse a port that cannot be used, before a long fit."""
    _bind(port).close()
