"""Takes report-*.png: the page that `sylvan impute --report` writes, of made-up songs. Needs Chromium."""

import sys
import tempfile
from pathlib import Path
from subprocess import run

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests" / "slow"))
import test_browser_review as made  # noqa: E402 (its folder was added above)

SIZE = {"width": 1280, "height": 860}


def main(folder: Path) -> None:
    """Write the page, and take pictures of two parts of it."""
    made.MOODS[-1] = "amazed"
    made.TABLE[made.TABLE.index("-l") + 1] = ",".join(made.MOODS)
    made.write_songs(folder)
    wanted = ["-o", "completed.csv", "--report", "report.html", "--check", "--quiet"]
    run([*made.COMMAND, "impute", *made.TABLE, *wanted], cwd=folder, env=made.ENVIRONMENT, check=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=made.chromium(), args=list(made.FLAGS))
        page = browser.new_page(viewport=SIZE)
        page.goto((folder / "report.html").as_uri())
        page.screenshot(path=HERE / "report-summary.png")
        page.click("a:has-text('Labels found missing')")
        page.screenshot(path=HERE / "report-missing.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made_folder:
        main(Path(made_folder))
