"""Look at a page with headless Chromium: what a browser makes of it, not what the text says."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip
# Folded parts are opened, since what is not shown has no size.
_LOOK = """() => {
  document.querySelectorAll("details").forEach(d => { d.open = true; });
  const all = s => [...document.querySelectorAll(s)];
  const f = {}, wide = document.documentElement;
  f.title = document.title;
  f.figures = all("figure").length;
  f.figures_without_caption = all("figure").filter(
    x => !x.id || !x.querySelector("figcaption")?.innerText.trim()).length;
  f.images = all("img").map(x => [x.complete, x.naturalWidth, (x.alt || "").length]);
  f.drawings = all("figure svg").map(x => { const b = x.getBoundingClientRect();
    return [b.width, b.height, (x.getAttribute("aria-label") || "").length]; });
  f.tables = all("table").map(x => [x.querySelectorAll("tbody tr").length,
    [...x.querySelectorAll("tbody tr")].filter(r => r.innerText.trim()).length]);
  f.columns = all("table").every(t => new Set([...t.rows].map(r => r.cells.length)).size <= 1);
  f.ids = all("[id]").length; f.distinct_ids = new Set(all("[id]").map(x => x.id)).size;
  f.broken_links = all('a[href^="#"]').filter(a => !document.getElementById(a.getAttribute("href").slice(1))).length;
  f.broken_uses = all("use").filter(u => !document.getElementById((u.getAttribute("href") || "").slice(1))).length;
  f.width = window.innerWidth; f.scroll_width = Math.max(wide.scrollWidth, document.body.scrollWidth);
  f.scripts = all("script").map(x => [x.hasAttribute("src"), x.textContent]); f.sections = all("section > h2").length;
  return f;
}"""


def chromium() -> str | None:
    names = ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@contextmanager
def open_page(path: Path, *, width: int = 1200, dark: bool = False, javascript: bool = True) -> Iterator[Any]:
    """Open a page in a window of that width; `page.errors` and `page.requests` note what it does."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            scheme = "dark" if dark else "light"
            page = browser.new_page(
                viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=javascript
            )
            page.errors, page.requests = [], []
            page.on("pageerror", lambda error: page.errors.append(str(error)))
            page.on("console", lambda said: page.errors.append(said.text) if said.type == "error" else None)
            page.on("request", lambda request: page.requests.append(request.url))
            page.goto(path.as_uri())
            page.requests = [url for url in page.requests if url != path.as_uri() and not url.startswith("data:")]
            yield page
        finally:
            browser.close()


def inspect_page(path: Path, *, width: int = 400) -> dict[str, Any]:
    """Return what is found on a page in a window of that width."""
    with open_page(path, width=width) as page:
        found: dict[str, Any] = page.evaluate(_LOOK)
        return found | {"errors": page.errors, "requests": page.requests}


def find_barriers(page: Any) -> list[str]:
    """Return what axe calls serious or critical for people who see, hear or move otherwise."""
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    found = Axe().run(page).response["violations"]
    grave = [each for each in found if each["impact"] in ("serious", "critical")]
    return [f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:300]}" for each in grave]


def check_page(path: Path, *, widths: tuple[int, ...] = (390, 1200)) -> dict[str, Any]:
    """Assert what every page must keep: it is whole, has no errors, needs nothing else and fits a phone."""
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"""<[^>]*\s(?:src|href|action|srcset)\s*=\s*["']?(?!data:|#)[^"'\s>]""", text), (
        "the page refers to something outside"
    )
    assert not re.search(r"url\((?!#)|@import", text), "the style refers to something outside"
    assert not re.search(r"<[^>]*https?://", text), "a tag names an address"
    found: dict[str, Any] = {}
    for width in widths:
        found = inspect_page(path, width=width)
        assert found["errors"] == []
        assert found["requests"] == []
        assert len(found["scripts"]) <= 1
        assert not any(fetched for fetched, _ in found["scripts"])
        assert found["width"] == width
        assert found["scroll_width"] <= width, f"wider than a screen of {width} pixels"
        for complete, size, alt in found["images"]:
            assert complete
            assert size > 0
            assert alt > 0
        for wide, high, alt in found["drawings"]:
            assert wide > 50
            assert high > 30
            assert alt > 0
        assert len(found["images"]) + len(found["drawings"]) == found["figures"]
        assert found["figures_without_caption"] == 0
        for rows, filled in found["tables"]:
            assert rows == filled > 0
        assert found["columns"], "a table whose rows have different numbers of cells"
        assert found["ids"] == found["distinct_ids"]
        assert found["broken_links"] == 0
        assert found["broken_uses"] == 0
    return found
