"""Who may ask, what may be asked; nothing else gets an answer that helps."""

import asyncio
import json
import socket
from types import SimpleNamespace

import httpx
import pytest
import threadpoolctl

from app.review.made_reviews import decided_in, session_of
from sylvan.app.review import server as rooms
from sylvan.app.review.server import Gate, Server, check_port, make_app
from sylvan.labels.decisions import as_table

pytestmark = pytest.mark.filterwarnings("ignore:.*were drawn by every tree")
PORT, TOKEN = 8000, "a-token-of-the-tests"
HOME = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with threadpoolctl.threadpool_limits(1):
        yield


class Browser:
    """Asks an application without a network; keeps its cookies."""

    def __init__(self, app, home=HOME):
        self.app, self.home, self.headers, self.cookies = app, home, {"Origin": home}, {}

    def request(self, method, path, headers=(), content=None, **body):
        async def ask():
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=self.home, cookies=self.cookies) as client:
                sent = content if content is None or isinstance(content, bytes) else in_parts(content)
                found = await client.request(method, path, headers=self.headers | dict(headers), content=sent, **body)
                self.cookies = dict(client.cookies)
                return found

        return asyncio.run(ask())

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, **more):
        return self.request("POST", path, **more)


async def in_parts(parts):
    for part in parts:
        yield part


@pytest.fixture
def page(tmp_path):
    """A session, its gate, and a browser that has used the link."""
    session = session_of(tmp_path / "decisions.csv")
    gate = Gate(make_app(session), PORT, TOKEN)
    browser = Browser(gate)
    assert browser.get(f"/?token={TOKEN}").status_code == 303
    path = tmp_path / "decisions.csv"
    yield SimpleNamespace(session=session, gate=gate, path=path, browser=browser, stranger=Browser(gate))
    session.close()


def answer(page, decision="confirmed", **more):
    cell = page.browser.get("/api/state").json()["cell"]
    return page.browser.post("/api/decide", json={"cell": cell["cell"], "decision": decision, "was": None} | more)


def error_of(found, status):
    assert found.status_code == status, found.text
    assert list(found.json()) == ["error"]
    assert "Traceback" not in found.text
    assert ".py" not in found.text
    return found.json()["error"]


# -------------------------------------------------------------------------------------------------------- who may ask


def test_the_link_gives_a_cookie_that_no_script_and_no_other_site_gets(page):
    found = page.stranger.get(f"/?token={TOKEN}")
    assert found.status_code == 303
    assert found.headers["location"] == "/"
    cookie = found.headers["set-cookie"]
    assert cookie.startswith(f"sylvan-review-{PORT}=")
    assert {"httponly", "samesite=strict"} <= {part.strip().lower() for part in cookie.split(";")}
    assert TOKEN not in cookie
    assert page.stranger.get("/").status_code == 200


@pytest.mark.parametrize("token", ["", "x", TOKEN + "x", TOKEN[:-1], "ü", "\0"])
def test_another_token_opens_nothing(page, token):
    found = page.stranger.get("/", params={"token": token})
    assert found.status_code == 403
    assert "decisions are safe" in found.text
    assert "sylvan review" in found.text
    assert "set-cookie" not in found.headers


@pytest.mark.parametrize("secret", ["", "x", "wrong", TOKEN])
@pytest.mark.parametrize("path", ["/", "/api/state", "/static/review.js", "/image/0/0", "/none"])
def test_without_the_cookie_nothing_is_shown(page, path, secret):
    found = page.stranger.get(path, headers={"Cookie": f"sylvan-review-{PORT}={secret}"})
    assert found.status_code == (403 if path == "/" else 401)
    assert "song" not in found.text


def test_nobody_decides_without_the_cookie(page):
    cell = page.browser.get("/api/state").json()["cell"]["cell"]
    found = page.stranger.post("/api/decide", json={"cell": cell, "decision": "confirmed", "was": None})
    assert "safe" in error_of(found, 401)
    assert decided_in(page.path) == {}


def test_secrets_are_compared_in_constant_time(page, monkeypatch):
    seen = []
    monkeypatch.setattr(rooms.hmac, "compare_digest", lambda *both: seen.append(both) or False)
    page.browser.get("/?token=x")
    page.browser.get("/api/state")
    assert (b"x", TOKEN.encode()) in seen
    assert page.gate.secret.encode() in [secret for _, secret in seen]


def test_secrets_are_long_and_new_each_time(page):
    other = Gate(None, PORT, TOKEN)
    assert other.secret != page.gate.secret
    assert len(other.secret) >= 43


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1:{PORT}.evil.example", "",
             f"127.0.0.1.evil.example:{PORT}", f"[::1]:{PORT}", f"0.0.0.0:{PORT}"],
)  # fmt: skip
@pytest.mark.parametrize("path", [f"/?token={TOKEN}", "/api/state"])
def test_a_name_that_was_bound_to_this_machine_is_not_served(page, host, path):
    error_of(page.browser.get(path, headers={"Host": host}), 403)


def test_localhost_is_this_machine(page):
    local = Browser(page.gate, f"http://localhost:{PORT}")
    assert local.get(f"/?token={TOKEN}").status_code == 303
    assert local.get("/api/state").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": f"https://127.0.0.1:{PORT}"},
        {"Origin": f"http://localhost:{PORT}"},  # the page was opened under the other name
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
@pytest.mark.parametrize("what", ["decide", "withdraw", "show", "audit", "refit", "finish"])
def test_other_sites_cannot_decide(page, headers, what):
    cell = page.browser.get("/api/state").json()["cell"]["cell"]
    before = page.path.read_bytes()
    body = {"cell": cell, "decision": "confirmed", "was": None, "n": 5}
    error_of(page.browser.post(f"/api/{what}", json=body, headers=headers), 403)
    assert page.path.read_bytes() == before


def test_a_post_without_an_origin_is_refused(page):
    page.browser.headers.pop("Origin")
    error_of(page.browser.post("/api/show", json={"cell": None}), 403)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"])
def test_only_json_is_taken(page, kind):
    error_of(page.browser.post("/api/show", content=b'{"cell": null}', headers={"Content-Type": kind}), 415)


@pytest.mark.parametrize("path", ["/", "/api/state", "/none", "/static/review.js", "/static/none"])
@pytest.mark.parametrize("who", ["browser", "stranger"])
def test_all_answers_keep_browsers_from_doing_more(page, path, who):
    headers = getattr(page, who).get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self'",
        "connect-src": "'self'", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
    }  # fmt: skip
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


def test_a_link_on_another_site_is_followed_once_more_by_our_own_page(page):
    found = page.stranger.get("/", headers={"Sec-Fetch-Site": "cross-site"})
    assert found.status_code == 200
    assert 'http-equiv="refresh"' in found.text
    assert "script" not in found.text
    assert page.stranger.get("/", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 403


# -------------------------------------------------------------------------------------------------- what may be asked


def test_the_page_and_its_files_are_served_and_nothing_beside_them(page):
    assert page.browser.get("/").headers["content-type"].startswith("text/html")
    for name in ("review.js", "review.css", "style.css"):
        assert page.browser.get(f"/static/{name}").status_code == 200
    for path in ("/static/", "/static/..%2fserver.py", "/static/../server.py", "/static/%2e%2e/server.py", "/static",
                 "/static/review.html", "/docs", "/openapi.json", "/static/review.js/", "/%00"):  # fmt: skip
        error_of(page.browser.get(path), 404)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"1", b'"x"', b"null", b"[" * 60_000, b'{"n": NaN}', b'{"n": Infinity}', b"\xff",
             b'{"n": ' + b"9" * 5000 + b"}"]
)  # fmt: skip
def test_what_is_no_object_of_json_is_refused(page, body):
    found = page.browser.post("/api/audit", content=body, headers={"Content-Type": "application/json"})
    error_of(found, 400)


@pytest.mark.parametrize("chunked", [True, False])
def test_large_requests_are_refused(page, chunked):
    data = b'{"cell": "' + b"x" * 70_000 + b'"}'
    content = (data[at : at + 1000] for at in range(0, len(data), 1000)) if chunked else data
    found = page.browser.post("/api/show", content=content, headers={"Content-Type": "application/json"})
    error_of(found, 413)


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("decide", {"cell": "1.1", "decision": "withdrawn"}),
        ("decide", {"cell": "1.1", "decision": None}),
        ("decide", {"cell": "1.1", "decision": ["confirmed"]}),
        ("decide", {"cell": "1.1", "decision": "yes"}),
        ("decide", {"cell": "../1", "decision": "confirmed"}),
        ("decide", {"cell": {"a": 1}, "decision": "confirmed"}),
        ("decide", {"cell": "1.1", "decision": "confirmed", "id": 1}),
        ("decide", {"cell": "1.1", "decision": "confirmed", "id": "x" * 200}),
        ("decide", {}),
        ("withdraw", {"cell": None}),
        ("show", {"cell": "99.1"}),
        ("audit", {"n": 0}),
        ("audit", {"n": -1}),
        ("audit", {"n": True}),
        ("audit", {"n": 1.5}),
        ("audit", {"n": 10**9}),
        ("audit", {"n": "5"}),
        ("audit", {"n": 5, "precision": 2}),
        ("audit", {"n": 5, "precision": "0.8"}),
        ("audit", {}),
        ("refit", {}),
        ("finish", {}),
        ("show", {"cell": None, "order": 5}),
        ("show", {"cell": None, "order": {"by": "name"}}),
        ("show", {"cell": None, "order": {"by": ["value"]}}),
        ("show", {"cell": None, "order": {"label": 3}}),
        ("show", {"cell": None, "order": {"label": True}}),
        ("show", {"cell": None, "order": {"row": -1}}),
        ("show", {"cell": None, "order": {"row": 1e3}}),
        ("show", {"cell": None, "order": {"row": "1"}}),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(page, what, body):
    before, state = page.path.read_bytes(), page.browser.get("/api/state").json()
    error_of(page.browser.post(f"/api/{what}", json=body), 400)
    assert page.path.read_bytes() == before
    assert page.browser.get("/api/state").json()["cell"]["cell"] == state["cell"]["cell"]


@pytest.mark.parametrize(
    "query", ["by=name", "label=3", "label=x", "row=-1", "row=60", "row=1.5", "label=²", "row=" + "9" * 30]
)
def test_orders_that_make_no_sense_are_refused(page, query):
    error_of(page.browser.get(f"/api/state?{query}"), 400)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/decide"), ("POST", "/api/state"), ("POST", "/"), ("DELETE", "/"), ("PUT", "/api/state"),
     ("OPTIONS", "/api/decide"), ("PATCH", "/static/style.css")],
)  # fmt: skip
def test_other_methods_are_refused(page, method, path):
    error_of(page.browser.request(method, path, headers={"Content-Type": "application/json"}), 405)


def test_an_error_nobody_thought_of_is_told_without_a_trace(page, monkeypatch):
    monkeypatch.setattr(page.session, "state", lambda *args: 1 / 0)
    assert "safe" in error_of(page.browser.get("/api/state"), 500)


# --------------------------------------------------------------------------------------------------------- decisions


def test_a_decision_is_stored_before_it_is_answered(page):
    found = answer(page, "rejected")
    assert found.status_code == 200
    assert list(decided_in(page.path).values()) == ["rejected"]
    state = found.json()
    assert state["audit"]["answered"] == 1
    assert state["recent"][0]["decision"] == "rejected"


def test_a_repeated_request_is_answered_and_not_doubled(page):
    cell = page.browser.get("/api/state").json()["cell"]["cell"]
    body = {"cell": cell, "decision": "confirmed", "was": None, "id": "key-1"}
    first, second = (page.browser.post("/api/decide", json=body) for _ in range(2))
    assert first.status_code == second.status_code == 200
    assert first.json()["cell"] == second.json()["cell"]
    assert sum(line["decision"] != "" for line in as_table(page.path).to_dict("records")) == 1
    before = page.path.read_bytes()
    body = {"n": 3, "precision": None, "id": "key-2"}
    planned = [page.browser.post("/api/audit", json=body).json()["audit"]["planned"] for _ in range(2)]
    assert planned[0] == planned[1]
    assert page.path.read_bytes().count(b"\n") == before.count(b"\n") + 3


def test_two_tabs_about_one_cell(page):
    cell = page.browser.get("/api/state").json()["cell"]["cell"]
    body = {"cell": cell, "decision": "confirmed", "was": None, "id": "tab 1"}
    assert page.browser.post("/api/decide", json=body).status_code == 200
    before = page.path.read_bytes()
    found = page.browser.post("/api/decide", json=body | {"decision": "rejected", "id": "tab 2"})
    assert found.status_code == 409
    state = found.json()
    assert state["cell"]["cell"] == cell
    assert state["cell"]["decision"] == "confirmed"
    assert "meanwhile" in state["notice"]
    assert page.path.read_bytes() == before
    again = page.browser.post("/api/decide", json=body | {"decision": "rejected", "was": "confirmed", "id": "tab 2b"})
    assert again.status_code == 200
    assert list(decided_in(page.path).values()) == ["rejected"]


def test_undo_brings_the_cell_back(page):
    done = answer(page).json()["recent"][0]
    found = page.browser.post("/api/withdraw", json={"cell": done["cell"], "was": "confirmed", "id": "u"})
    assert found.status_code == 200
    assert found.json()["cell"]["cell"] == done["cell"]
    assert found.json()["cell"]["decision"] is None
    assert decided_in(page.path) == {}


@pytest.mark.parametrize("how", ["full", "changed"])
def test_what_cannot_be_stored_is_told_and_can_be_tried_again(page, how, monkeypatch):
    cell = page.browser.get("/api/state").json()["cell"]["cell"]
    body = {"cell": cell, "decision": "confirmed", "was": None, "id": "again"}
    with monkeypatch.context() as patch:
        if how == "full":

            def put(self, data):
                raise OSError(28, "No space left on device", "decisions.csv")

            patch.setattr("sylvan.app.review.store.DecisionStore._put", put)
            text = error_of(page.browser.post("/api/decide", json=body), 507)
            assert "No space left" in text
        else:
            patch.setattr(page.session.ledger.store, "_size", 1)
            assert "another program" in error_of(page.browser.post("/api/decide", json=body), 409)
        assert page.browser.get("/api/state").json()["cell"]["cell"] == cell
        assert page.browser.get("/api/state").json()["recent"] == []
    assert page.browser.post("/api/decide", json=body).status_code == 200
    assert list(decided_in(page.path).values()) == ["confirmed"]


def test_the_state_is_plain_json(page):
    text = page.browser.get("/api/state").text
    json.loads(text, parse_constant=lambda name: pytest.fail(name))


# ----------------------------------------------------------------------------------------------------- a real server


def test_a_server_is_reached_from_this_machine_alone(tmp_path):
    running = Server(session_of(tmp_path / "decisions.csv"))
    try:
        assert running._socket.getsockname()[0] == "127.0.0.1"
        address = f"http://127.0.0.1:{running.port}"
        with httpx.Client(headers={"Origin": address}, follow_redirects=True) as browser:
            assert browser.get(running.url).status_code == 200
            assert "token" not in str(browser.get(address).url)
            cell = browser.get(f"{address}/api/state").json()["cell"]["cell"]
            found = browser.post(f"{address}/api/decide", json={"cell": cell, "decision": "unsure", "was": None})
            assert found.status_code == 200
            data = (b"x" * 1000 for _ in range(100))  # of no stated length
            found = browser.post(f"{address}/api/show", content=data, headers={"Content-Type": "application/json"})
            assert found.status_code == 413
        with pytest.raises(OSError, match="choose another one"):
            check_port(running.port)
    finally:
        running.stop()
    assert list(decided_in(tmp_path / "decisions.csv").values()) == ["unsure"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", running.port), timeout=1)
