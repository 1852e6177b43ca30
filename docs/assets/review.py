"""Takes review-*.png: the review page of made-up songs, decided by somebody who knows the truth. Needs Chromium."""

import sys
import tempfile
from pathlib import Path
from subprocess import run

from playwright.sync_api import Page, Route, sync_playwright

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "slow"))
import test_browser_review as made  # noqa: E402 (its folder was added above)

WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}


def take(page: Page, name: str) -> None:
    """Take a picture when all is counted, and nothing moves."""
    page.wait_for_selector("#missing:not(:has-text('being counted'))")
    page.mouse.move(600, 5)
    page.wait_for_timeout(500)
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=HERE / f"review-{name}.png")


def answer_audit(page: Page) -> None:
    """Answer all cells that were drawn."""
    while page.get_attribute("#kind", "class") == "audit":
        made.answer(page, {})


def draw(page: Page, n: int, precision: str) -> None:
    """Draw more cells, to certify a list."""
    page.wait_for_selector("#missing:not(:has-text('being counted'))")
    page.click("#draw summary")
    page.fill("#n", str(n))
    page.select_option("#precision", precision)
    page.click("#audit")
    page.wait_for_selector("#kind.audit")
    answer_audit(page)


def main(folder: Path) -> None:
    """Review the songs, and take pictures on the way."""

    def at_home(route: Route) -> None:
        found = route.fetch()
        route.fulfill(response=found, body=found.text().replace(str(folder.resolve()), "/home/ana"))

    made.MOODS[-1] = "amazed"
    made.TABLE[made.TABLE.index("-l") + 1] = ",".join(made.MOODS)
    made.write_songs(folder)
    fit = [*made.COMMAND, "fit", *made.TABLE, "--with-rows", "-o", "songs.sylvan", "--quiet"]
    run(fit, cwd=folder, env=made.ENVIRONMENT, check=True)
    server = made.Server(folder, folder / "songs.sylvan", audit=100)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=made.chromium(), args=list(made.FLAGS))
            desk = browser.new_context(viewport=WIDE, reduced_motion="reduce")
            page = made.open_page(desk, server)
            for _ in range(32):
                made.answer(page, {})
            take(page, "audit")
            answer_audit(page)
            draw(page, 60, "0.8")
            draw(page, 100, "0.8")
            for _ in range(20):
                made.answer(page, {})
            page.wait_for_selector("#reasons li")
            take(page, "queue")
            page.emulate_media(color_scheme="dark")
            take(page, "dark")
            page.emulate_media(color_scheme="light")
            kept = desk.storage_state()  # the first interval
            hand = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True, storage_state=kept)
            take(made.open_page(hand, server), "phone")
            page.route("**/api/finish", at_home)  # no picture of a folder that will be gone
            page.click("#finish")
            page.wait_for_selector("#finished:not([hidden])")
            take(page, "finish")
            browser.close()
    finally:
        server.kill()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
