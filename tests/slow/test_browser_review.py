"""The review page in a real browser, with a real server: what is pressed is what the files say in the end."""

import os
import re
import signal
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pytest
from browser import chromium

from sylvan.labels.decisions import as_table

pytestmark = [pytest.mark.slow, pytest.mark.skipif(chromium() is None, reason="no Chromium is installed")]

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
KEYS = {"confirmed": "a", "rejected": "x", "unsure": "Space"}
TIMES = """
window.times = []; window.wrong = [];
let pressed = null;
addEventListener("keydown", () => { pressed = performance.now(); }, true);
addEventListener("error", event => window.wrong.push(event.message));
document.addEventListener("securitypolicyviolation", event => window.wrong.push(event.violatedDirective));
document.addEventListener("DOMContentLoaded", () => new MutationObserver(([record]) => {
  if (pressed !== null) { window.times.push(performance.now() - pressed); pressed = null; }
  const { cell, seen } = record.target.dataset;
  if (cell !== record.oldValue && seen !== undefined) window.wrong.push("a cell is taken for seen when it comes");
}).observe(document.getElementById("cell") || document.body,
  {attributes: true, attributeFilter: ["data-cell"], attributeOldValue: true}));
"""


SOUND = ["tempo (bpm)", "loudness (dB)", "brightness (Hz)", "length (s)", "pitch range (semitones)", "attack (ms)"]
MOODS = ["calm", "happy", "sad", "angry", "quiet", "<b>amazed</b>"]
NOTES = (
    "Recorded live in a church hall; one can hear the rain on its roof.",
    "Two guitars and a voice; the second verse is hardly sung at all.",
    "Fast & loud, <i>feedback</i> to the end.\nThe band has never played it since.",
)


def songs() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return sounds of songs, their moods as recorded, and their moods in truth: about half are not recorded."""
    rng = np.random.default_rng(7)
    plain = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 12)) + 0.7 * rng.standard_normal((400, 12))
    present = 1 / (1 + np.exp(-5 * (plain[:, :6] - plain[:, 6:] - 0.8))) > rng.random((400, 6))
    recorded = present & (rng.random(present.shape) < 0.5)
    names = [*SOUND, *(f"timbre {at}" for at in range(1, 7))]
    scale = np.array([30, 5, 700, 60, 6, 40, 1, 1, 1, 1, 1, 1])
    middle = np.array([118, -14, 1900, 215, 20, 130, 0, 0, 0, 0, 0, 0])
    index = pd.Index([f"song {at + 1:03d}" for at in range(400)], name="song")
    X = pd.DataFrame((plain / plain.std(axis=0) * scale + middle).round(1), index, names)
    return X, pd.DataFrame(recorded.astype(int), index, MOODS), pd.DataFrame(present, index, MOODS)


def write_songs(folder: Path) -> None:
    """Write the table, with notes and pictures that the model does not learn from."""
    (folder / "covers").mkdir()
    for at in range(4):
        (folder / "covers" / f"cover {at}.png").write_bytes(picture(at))
    X, Y, _ = songs()
    notes = [NOTES[at % len(NOTES)] for at in range(len(X))]
    covers = [f"cover {at % 4}.png" for at in range(len(X))]
    pd.concat([X.assign(note=notes, cover=covers), Y], axis=1).to_csv(folder / "songs.csv")


def picture(seed: int, size: int = 96) -> bytes:
    """Return a picture, PNG."""
    y, x = np.mgrid[:size, :size] / size
    red, green, blue = (0.5 + 0.5 * np.sin((seed + 2) * (x + k * y) + k) for k in range(3))
    pixels = (255 * np.stack([red, green, blue], axis=2)).astype(np.uint8)
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(lines)) + part(b"IEND", b"")


COMMAND = [sys.executable, "-m", "sylvan.app.cli"]
TABLE = ["songs.csv", "--id", "song", "-l", ",".join(MOODS), "--drop", "note,cover"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}


class Server:
    """`sylvan review` in a process of its own, which can be killed and started again."""

    def __init__(self, folder: Path, model: Path, audit: int = 0) -> None:
        self.folder, self.port, self.decisions = folder, 0, folder / "songs-decisions.csv"
        self.command = [*COMMAND, "review", *TABLE, "--model", str(model), "--audit", str(audit), "--user", "ana"]
        self.command += ["--no-browser", "--images", "covers"]
        self.start()

    def start(self) -> None:
        # Its messages may be many, and nobody reads them while it runs.
        with (self.folder / "messages.txt").open("a") as messages:
            self.process = subprocess.Popen(
                [*self.command, "--port", str(self.port)], cwd=self.folder, env=ENVIRONMENT, text=True,
                stdout=subprocess.PIPE, stderr=messages,
            )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\S+", line)
        assert found, line + (self.folder / "messages.txt").read_text()
        self.url = found.group()
        self.port = int(urlsplit(self.url).port or 0)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def lines(self) -> pd.DataFrame:
        """Return what is in the file, but for plans of audits."""
        lines = as_table(self.decisions)
        return lines[lines["decision"] != ""].reset_index(drop=True)

    def said(self) -> dict[tuple[str, str], str]:
        """Return the last word about each cell."""
        lines = self.lines()
        last = {(row, label): word for row, label, word in zip(lines["row"], lines["label"], lines["decision"])}
        return {cell: word for cell, word in last.items() if word != "withdrawn"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: Any) -> Path:
    folder = tmp_path_factory.mktemp("model")
    write_songs(folder)
    command = [*COMMAND, "fit", *TABLE, "--trees", "20", "--with-rows", "-o", "songs.sylvan", "--quiet"]
    subprocess.run(command, cwd=folder, env=ENVIRONMENT, check=True)
    return folder / "songs.sylvan"


@pytest.fixture
def start(tmp_path: Path, model: Path) -> Iterator[Any]:
    write_songs(tmp_path)
    running: list[Server] = []

    def make(audit: int = 0) -> Server:
        running.append(Server(tmp_path, model, audit))
        return running[-1]

    yield make
    for server in running:
        server.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    made = browser.new_context(viewport={"width": 1280, "height": 800})
    made.add_init_script(TIMES)
    yield made
    for page in made.pages:
        assert page.evaluate("window.wrong") == []
    made.close()


def open_page(context: Any, server: Server) -> Any:
    page = context.new_page()
    page.goto(server.url)
    page.wait_for_selector("#cell[data-cell]")
    return page


def cell_of(page: Any) -> str:
    return page.get_attribute("#cell", "data-cell")


X, Y, PRESENT = songs()


def names(cell: str) -> tuple[str, str]:
    row, label = map(int, cell.split("."))
    return str(X.index[row]), MOODS[label]


def truth(cell: str) -> str:
    """Return what somebody who knows says of a cell; of some, that nobody can tell."""
    row, label = map(int, cell.split("."))
    if (5 * row + label) % 11 == 0:
        return "unsure"
    return "confirmed" if PRESENT.to_numpy()[row, label] else "rejected"


# Waiting for a selector, never for a function: the page forbids `eval`, which that needs.
def wait_for_other(page: Any, cell: str | None) -> None:
    page.wait_for_selector(f"#cell:not([data-cell='{cell}'])")


def press(page: Any, key: str) -> None:
    """Press a key when somebody can have seen the cell, as people do; before, it would not be taken."""
    page.wait_for_selector("#cell[data-seen][aria-busy=false]")
    page.keyboard.press(key)


def answer(page: Any, said: dict[tuple[str, str], str], how: str = "key") -> str:
    """Decide the cell that is shown, and wait for the next one."""
    cell = cell_of(page)
    decision = truth(cell)
    if how == "key":
        press(page, KEYS[decision])
    else:
        page.wait_for_selector("#cell[data-seen]")
        page.click({"confirmed": "#yes", "rejected": "#no", "unsure": "#unsure"}[decision])
    wait_for_other(page, cell)
    said[names(cell)] = decision
    return cell


def idle(page: Any) -> None:
    page.wait_for_selector("#cell[aria-busy=false]")


def until(page: Any, expression: str) -> None:
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    pytest.fail(expression)


def notice(page: Any) -> str:
    page.wait_for_selector("#notice:not([hidden])")
    return page.inner_text("#notice")


def focus(page: Any) -> str:
    return page.evaluate("document.activeElement.id || document.activeElement.tagName")


def counted(page: Any) -> str:
    page.wait_for_selector("#missing:not(:has-text('being counted'))")
    return page.inner_text("#missing b")


def test_what_is_pressed_is_what_the_files_say(start, context):
    server = start(audit=60)
    page = open_page(context, server)
    said: dict[tuple[str, str], str] = {}
    assert page.inner_text("#kind") == "Audit: drawn at random, so the probability is hidden"
    assert page.is_hidden("#chance")
    assert page.is_hidden("#order")
    for at in range(60):
        assert page.get_attribute("#answered", "value") == str(at)
        early = page.inner_text("#missing")
        if at < 20:  # no number, and no scale
            left = "1 more answer" if at == 19 else f"{20 - at} more answers"
            assert early.strip() == f"Too early to count: {left}"
            assert page.is_hidden("#interval")
        else:
            assert "labels missing (" in early
        answer(page, said)
    assert server.said() == said
    assert "labels missing (" in counted(page)
    assert "by the model's word" not in page.inner_text("#missing")
    assert page.locator("#interval .range").count() == 1
    assert page.is_visible("#chance")
    assert page.locator("#recent li").count() == 10

    for _ in range(40):
        answer(page, said)
    # Of quick keys the first one counts; nobody has seen the cell that the others would be about.
    cell = cell_of(page)
    page.wait_for_selector("#cell[data-seen]")
    page.evaluate("""() => ["a", "x", "x", "a"].forEach(
        key => document.body.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})))""")
    wait_for_other(page, cell)
    said[names(cell)] = "confirmed"
    idle(page)
    assert server.said() == said
    # ... also if the answer was quicker than the second key.
    cell = cell_of(page)
    press(page, "x")
    wait_for_other(page, cell)
    said[names(cell)] = "rejected"
    idle(page)
    unseen = cell_of(page)
    page.evaluate("""() => { document.getElementById("cell").removeAttribute("data-seen");
        document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "x", bubbles: true}));
        document.getElementById("yes").click(); }""")
    assert "not taken" in page.inner_text("#live")
    idle(page)
    assert cell_of(page) == unseen
    assert server.said() == said
    page.reload()  # what this test has made unseen
    page.wait_for_selector("#cell[data-seen]")

    # Undo brings the cell back, and another answer can be given.
    cell = answer(page, said)
    page.keyboard.press("Backspace")
    page.wait_for_selector(f"#cell[data-cell='{cell}']")
    assert page.is_hidden("#said")
    assert names(cell) not in server.said()
    press(page, "x")
    wait_for_other(page, cell)
    said[names(cell)] = "rejected"

    # An old decision is changed without a mouse.
    page.evaluate("scrollTo(0, 300)")
    assert page.locator("#recent [aria-current]").count() == 0
    page.locator("#recent button").nth(6).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#said:not([hidden])")
    old = cell_of(page)
    idle(page)
    assert focus(page) == "cell"
    assert page.evaluate("scrollY") == 0  # the bar is seen as a whole
    assert page.locator("#recent [aria-current=true]").count() == 1
    assert page.get_attribute("#recent li:nth-child(7) button", "aria-current") == "true"
    assert page.inner_text("#said").startswith("So far: yes" if said[names(old)] == "confirmed" else "So far:")
    changed = "confirmed" if said[names(old)] != "confirmed" else "rejected"
    press(page, KEYS[changed])
    wait_for_other(page, old)
    said[names(old)] = changed
    # ... or left.
    page.locator("#recent button").nth(3).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#leave:not([hidden])")
    page.keyboard.press("Escape")
    page.wait_for_selector("#leave[hidden]", state="attached")
    assert page.locator("#recent [aria-current]").count() == 0
    assert server.said() == said

    page.reload()
    page.wait_for_selector("#cell[data-cell]")
    assert page.inner_text("#decided b") == "103 decided"
    # What is read as text has its words apart.
    assert re.match(r"103 decided \d+ yes", page.text_content("#decided"))

    # A second tab decides the cell that this one shows.
    other = open_page(context, server)
    cell = cell_of(page)
    assert cell_of(other) == cell
    # It shows the first interval as well.
    first = "localStorage.getItem(Object.keys(localStorage).find(key => key.startsWith('first ')))"
    assert other.evaluate(f"JSON.parse({first}).length") == 2
    press(other, "a")
    wait_for_other(other, cell)
    said[names(cell)] = "confirmed"
    n = len(server.lines())
    press(page, "x")
    assert "nothing was written" in notice(page)
    assert page.inner_text("#said").startswith("So far: yes")
    assert len(server.lines()) == n
    press(page, "x")
    wait_for_other(page, cell)
    said[names(cell)] = "rejected"
    other.close()

    while len(said) < 160:
        answer(page, said)
    times = page.evaluate("window.times")
    typical, most = np.percentile(times, [50, 95])
    print(f"\nFrom key to next cell: median {typical:.0f} ms, 95 % within {most:.0f} ms")  # noqa: T201

    page.click("#finish")
    page.wait_for_selector("#finished:not([hidden])")
    assert focus(page) == "cell"
    assert page.locator("#files dt").all_inner_texts() == [
        "completed.csv", "decisions.csv", "certificate.txt", "report.html",
    ]  # fmt: skip
    page.keyboard.press("a")  # of nothing
    idle(page)
    check_files(server, said)
    page.click("#go-on")
    page.wait_for_selector("#cell[data-cell]")
    answer(page, said)
    page.click("#finish")
    page.wait_for_selector("#finished:not([hidden])")
    check_files(server, said)


def check_files(server: Server, said: dict[tuple[str, str], str]) -> None:
    """Compare the results with what was pressed."""
    assert server.said() == said
    lines = as_table(server.folder / "songs-review" / "decisions.csv")
    lines = lines[lines["decision"].isin(["confirmed", "rejected", "unsure", "withdrawn"])]
    last = {(row, label): word for row, label, word in zip(lines["row"], lines["label"], lines["decision"])}
    assert {cell: word for cell, word in last.items() if word != "withdrawn"} == said
    done = pd.read_csv(server.folder / "songs-review" / "completed.csv", index_col="song")[MOODS]
    for (row, label), word in said.items():
        if word != "unsure":
            assert done.loc[row, label] == (word == "confirmed")
    assert (done.to_numpy() >= Y.to_numpy()).all()
    n = sum(word == "confirmed" for word in said.values())
    promise = (server.folder / "songs-review" / "certificate.txt").read_text()
    assert f"{len(said)} cells are decided: {n} confirmed" in promise


def test_a_mouse_does_it_as_well(start, context):
    server = start(audit=3)
    page = open_page(context, server)
    said: dict[tuple[str, str], str] = {}
    for _ in range(6):
        cell = answer(page, said, how="mouse")
        assert focus(page) == "cell"  # a space would press the button again
    page.click("#undo")
    page.wait_for_selector(f"#cell[data-cell='{cell}']")
    del said[names(cell)]
    page.click("#recent li:nth-child(2) button")
    page.wait_for_selector("#leave:not([hidden])")
    page.click("#leave")
    page.wait_for_selector("#leave[hidden]", state="attached")
    page.keyboard.press("?")
    page.wait_for_selector("#keys[open]")
    page.keyboard.press("a")  # is no decision while the list of keys is shown
    page.uncheck("#use-keys")
    page.click("#close")
    page.keyboard.press("a")
    idle(page)
    assert server.said() == said
    page.select_option("#by", "probability")
    page.wait_for_selector("#kind:has-text('most probable')")
    page.select_option("#label", "2")
    page.wait_for_selector("#cell[data-cell$='.2']")
    assert "label=2" in page.url
    answer(page, said, how="mouse")
    assert cell_of(page).endswith(".2")
    page.reload()
    page.wait_for_selector("#cell[data-cell$='.2']")
    assert page.input_value("#label") == "2"
    page.go_back()
    page.wait_for_selector("#label:has(option[value='']:checked)", state="attached")
    page.click("#one-row")
    page.wait_for_selector("#one-row[aria-pressed=true]")
    row = cell_of(page).split(".")[0]
    while page.is_hidden("#done"):
        assert cell_of(page).split(".")[0] == row
        cell = cell_of(page)
        page.wait_for_selector("#cell[data-seen]")
        page.click("#no")
        wait_for_other(page, cell)
        said[names(cell)] = "rejected"
        idle(page)
    page.click("#all")
    page.wait_for_selector("#cell[data-cell]")
    page.click("#draw summary")
    page.fill("#n", "5")
    assert "narrow the count of missing labels. They bring no list" in page.inner_text("#draw-hint")
    page.select_option("#precision", "0.8")
    assert "do not narrow the count" in page.inner_text("#draw-hint")
    page.select_option("#precision", "")
    page.evaluate("scrollTo(0, 1e6)")
    page.click("#audit")
    page.wait_for_selector("#kind.audit")
    idle(page)
    assert page.evaluate("scrollY") == 0
    assert page.get_attribute("#answered", "max") == "8"
    assert server.said() == said


def test_a_fit_while_the_queue_goes_on(start, context):
    server = start()
    page = open_page(context, server)
    said: dict[tuple[str, str], str] = {}
    for _ in range(5):
        answer(page, said)
    page.click("#refit")
    page.wait_for_selector("#fitting:not([hidden])")
    for _ in range(5):
        answer(page, said)
    page.wait_for_selector("#fitting[hidden]", state="attached")
    assert "learnt" in page.inner_text("#refit-note")
    answer(page, said)
    assert server.said() == said


def test_a_killed_server_loses_nothing(start, context):
    server = start(audit=10)
    page = open_page(context, server)
    said: dict[tuple[str, str], str] = {}
    for _ in range(4):
        answer(page, said)
    cell = cell_of(page)
    server.kill()
    assert server.said() == said
    page.wait_for_selector("#cell[data-seen]")
    page.evaluate("scrollTo(0, 1e6)")
    place = page.locator("#buttons").bounding_box()
    page.keyboard.press("a")
    page.wait_for_selector("#trouble:not([hidden])")
    # What is said is seen, above the question, and the buttons have not moved.
    box, question = (page.locator(part).bounding_box() for part in ("#trouble", "#kind"))
    assert 0 <= box["y"] < box["y"] + box["height"] <= question["y"]
    assert page.locator("#buttons").bounding_box() == pytest.approx(place, abs=1)
    assert "“yes” is not stored yet" in page.inner_text("#trouble")
    page.keyboard.press("x")  # nobody has seen the cell that this would be about
    assert page.get_attribute("#yes", "aria-disabled") == "true"

    server.start()
    page.wait_for_selector("#trouble:has-text('expired')")
    assert server.said() == said
    other = open_page(context, server)  # the new link, in another tab
    said[names(cell)] = "confirmed"
    page.wait_for_selector("#trouble", state="hidden")
    wait_for_other(page, cell)
    assert server.said() == said
    assert page.get_attribute("#answered", "max") == "10"  # the same audit goes on
    other.reload()
    other.wait_for_selector("#decided:has-text('5 decided')")

    # A tab that is loaded again in the meantime sends what it kept.
    cell = cell_of(page)
    page.wait_for_selector("#cell[data-seen]")
    server.kill()
    page.keyboard.press("x")
    page.wait_for_selector("#trouble:not([hidden])")
    server.start()
    page.goto(server.url)
    page.wait_for_selector("#cell[data-cell]")
    wait_for_other(page, cell)
    said[names(cell)] = "rejected"
    assert server.said() == said
    while page.get_attribute("#kind", "class") == "audit":
        answer(page, said)
    for _ in range(5):
        answer(page, said)
    assert server.said() == said
    assert len(server.lines()) == len(said)


def test_answers_that_are_lost_count_once(start, context):
    server = start()
    page = open_page(context, server)
    said: dict[tuple[str, str], str] = {}
    lost = []

    def lose(route):
        if len(lost) % 2 == 0:
            route.fetch()  # the server has stored it, and nobody hears of it
            lost.append(route.request.post_data_json["id"])
            route.abort()
        else:
            lost.append(route.request.post_data_json["id"])
            route.continue_()

    page.route("**/api/decide", lose)
    for _ in range(3):
        answer(page, said)
    assert lost[::2] == lost[1::2]
    assert len(set(lost)) == 3
    assert server.said() == said
    assert len(server.lines()) == 3

    # The server does not know what it was sent before it was killed, but the file has it.
    def lose_and_kill(route):
        route.fetch()
        server.kill()
        route.abort()

    page.unroute("**/api/decide")
    page.route("**/api/decide", lose_and_kill, times=1)
    cell = cell_of(page)
    press(page, "a")
    page.wait_for_selector("#trouble:not([hidden])")
    server.start()
    open_page(context, server)
    wait_for_other(page, cell)
    said[names(cell)] = "confirmed"
    assert "meanwhile" not in page.inner_text("#notice")
    assert page.is_hidden("#said")
    assert server.said() == said
    assert len(server.lines()) == 4

    # A key is about the cell that was seen when it was pressed, even if another one is on its way.
    held: list[Any] = []
    page.route("**/api/state?*", lambda route: held.append(route), times=1)
    cell = cell_of(page)
    page.wait_for_selector("#cell[data-seen]")
    label = next(at for at in range(len(MOODS)) if at != int(cell.split(".")[1]))
    page.select_option("#label", str(label))
    page.keyboard.press("Escape")
    page.focus("#cell")
    page.keyboard.press("x")
    assert cell_of(page) == cell
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    page.wait_for_selector(f"#cell[data-cell$='.{label}'][aria-busy=false]")
    said[names(cell)] = "rejected"
    assert server.said() == said

    # A key that is held down says one thing; what is no key of ours says nothing.
    cell = cell_of(page)
    page.wait_for_selector("#cell[data-seen]")
    page.keyboard.down("a")
    for _ in range(5):
        page.keyboard.down("a")
    page.keyboard.up("a")
    wait_for_other(page, cell)
    said[names(cell)] = "confirmed"
    for key in ("b", "Control+a", "Shift+Tab", "Tab"):
        page.keyboard.press(key)
    idle(page)
    assert server.said() == said


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(start, browser, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()
    server = start(audit=2)
    # Colours are looked at when they have come to rest.
    how = {"color_scheme": scheme, "reduced_motion": "reduce"}
    context = browser.new_context(viewport={"width": 1280, "height": 800}, **how)
    page = open_page(context, server)

    pointer = context.new_cdp_session(page)

    def check(state: str) -> None:
        """Look at it as on a desk, with a mouse, and as on a phone."""
        for width, finger in ((1280, False), (390, True)):
            pointer.send("Emulation.setTouchEmulationEnabled", {"enabled": finger, "maxTouchPoints": 1})
            assert page.evaluate("matchMedia('(pointer: coarse)').matches") == finger
            page.set_viewport_size({"width": width, "height": 844})
            found = axe.run(page).response["violations"]
            bad = [
                (each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")
            ]
            assert bad == [], f"{state}, {width} px"
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{state} is wider than {width} px"
            low = page.evaluate("""least => [...document.querySelectorAll("button, select, summary, [type=number]")]
                .filter(e => e.checkVisibility() && e.getBoundingClientRect().height < least).map(e => e.outerHTML)""",
                43.9 if finger else 23.9)  # fmt: skip
            assert low == [], f"{state}: too small for a {'finger' if finger else 'mouse'}"
        pointer.send("Emulation.setTouchEmulationEnabled", {"enabled": False})

    check("audit")
    said: dict[tuple[str, str], str] = {}
    answer(page, said)
    answer(page, said)
    page.wait_for_selector("#why-note:not(:has-text('worked out'))", state="attached")
    check("queue")
    page.click("#draw summary")
    check("draw more")
    page.click("#recent li:first-child button")
    page.wait_for_selector("#said:not([hidden])")
    check("change")
    page.keyboard.press("Escape")
    page.wait_for_selector("#leave[hidden]", state="attached")
    page.keyboard.press("?")
    page.wait_for_selector("#keys[open]")
    check("keys")
    page.keyboard.press("Escape")
    page.goto(f"http://127.0.0.1:{server.port}/#row={cell_of(page).split('.')[0]}")
    page.reload()
    page.wait_for_selector("#one-row[aria-pressed=true]")
    while page.is_hidden("#done"):
        cell = cell_of(page)
        press(page, "x")
        wait_for_other(page, cell)
        idle(page)
    check("done")
    page.click("#finish")
    page.wait_for_selector("#finished:not([hidden])")
    check("finished")
    server.kill()
    page.click("#go-on")
    page.wait_for_selector("#trouble:not([hidden])")
    check("no server")
    server.start()
    page.wait_for_selector("#trouble:has-text('expired')")
    check("expired")
    page.reload()
    page.wait_for_selector("text=expired")
    check("expired, loaded again")
    context.close()


def test_an_address_that_names_what_is_not_here(start, context):
    server = start()
    page = open_page(context, server)
    wrong = []
    page.on("response", lambda response: wrong.append(response.url) if response.status == 404 else None)
    page.goto("about:blank")
    page.goto(f"http://127.0.0.1:{server.port}/#by=probability&label=99")
    page.wait_for_selector("#cell[data-cell]")
    assert "There is no label of this number" in notice(page)
    assert page.url.endswith("#by=probability")
    assert page.input_value("#by") == "probability"
    assert page.locator("#label option").count() == 1 + len(MOODS)
    said: dict[tuple[str, str], str] = {}
    answer(page, said)
    page.goto(f"http://127.0.0.1:{server.port}/#row=4000")  # no new page, for only the end of the address is new
    page.wait_for_selector("#notice:has-text('There is no row of this number')")
    answer(page, said)
    page.click("#finish")
    page.wait_for_selector("#finished:not([hidden])")
    check_files(server, said)
    assert wrong == []


def test_names_are_text(start, context):
    server = start()
    page = open_page(context, server)
    page.select_option("#label", str(MOODS.index("<b>amazed</b>")))
    page.wait_for_selector("#cell[data-cell$='.5']")
    assert page.inner_text("#question") == "Does this row have the label <b>amazed</b>?"
    press(page, "a")
    page.wait_for_selector("#recent li")
    assert "<b>amazed</b>" in page.inner_text("#recent")

    notes = ["12 cells are decided.", "No list <i>yet</i>."]

    def with_notes(route):
        found = route.fetch()
        state = found.json()
        state["finished"] |= {"folder": "/home/ana/songs-review", "notes": notes}
        route.fulfill(response=found, json=state)

    page.route("**/api/finish", with_notes)
    page.click("#finish")
    page.wait_for_selector("#finished:not([hidden])")
    assert page.locator("#notes li").all_inner_texts() == notes
    assert page.inner_text("#folder") == "/home/ana/songs-review"
    page.click("#go-on")
    press(page, "a")
    page.wait_for_selector("#recent li:nth-child(2)")


def test_reasons_pictures_and_notes_are_shown(start, context):
    server = start(audit=1)
    page = open_page(context, server)
    page.wait_for_selector("#shown .words")
    row = int(cell_of(page).split(".")[0])
    assert page.inner_text("#shown .words") == NOTES[row % len(NOTES)]
    assert page.get_attribute("#shown img", "alt") == f"cover of row {X.index[row]}"
    page.wait_for_selector("#shown img")
    until(page, "document.querySelector('#shown img').naturalWidth === 96")
    assert page.is_hidden("#why")
    assert page.is_hidden("#similar")
    answer(page, {})
    page.wait_for_selector("#reasons li")  # they are asked for until they are there
    row, label = map(int, cell_of(page).split("."))
    points = [
        float(text.split()[0].replace("\N{MINUS SIGN}", "-")) for text in page.locator(".points").all_inner_texts()
    ]
    assert all(
        ("for" in text) == (number >= 0) for number, text in zip(points, page.locator(".points").all_inner_texts())
    )
    note = page.inner_text("#why-note")
    assert re.fullmatch(r"Percentage points, from \d+ % for any row to \d+ % for this one\.", note)
    base, end = (int(text) for text in re.findall(r"(\d+) %", note))
    assert sum(points) == pytest.approx(end - base, abs=0.5 * len(points) + 1)
    assert page.inner_text("#chance").startswith(f"{end} %")
    told = page.locator("#reasons li > span:first-child").first.inner_text()
    name = next(name for name in X if told.startswith(name))
    assert str(X.iloc[row][name]) in told
    assert name not in page.locator("#values dt").all_inner_texts()
    rows = page.locator("#rows tbody th").all_inner_texts()
    assert rows[0] == "this row"
    assert all(Y.loc[other, MOODS[label]] == 1 for other in rows[1:])
