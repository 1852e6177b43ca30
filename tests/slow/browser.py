"""Look at a page with headless Chromium: what a browser makes of it, not what the text says."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip
# Errors are noted from the start; the rest is counted when all pictures are there. Folded parts are opened, since what
# is not shown has no size.
_FIRST = """<script>window.found = {errors: []};
const note = text => window.found.errors.push(String(text));
window.addEventListener("error", e => note(e.message || (e.target && e.target.tagName)), true);
const loud = console.error; console.error = (...a) => { note(a.join(" ")); loud(...a); };</script>"""
_LAST = """<script>window.addEventListener("load", () => {
  document.querySelectorAll("details").forEach(d => { d.open = true; });
  const all = s => [...document.querySelectorAll(s)];
  const f = window.found, wide = document.documentElement;
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
  f.scripts = all("script").length; f.sections = all("section > h2").length;
  f.requests = performance.getEntriesByType("resource").map(e => e.name).filter(n => !n.startsWith("data:"));
  const out = document.createElement("pre"); out.id = "found"; out.textContent = JSON.stringify(f);
  document.body.append(out);
});</script>"""


def chromium() -> str | None:
    names = ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


def inspect_page(path: Path, tmp_path: Path, *, width: int = 400) -> dict[str, Any]:
    """Load a copy of the page in a frame of that width and return what a script in it found."""
    browser = chromium()
    assert browser is not None
    text = path.read_text(encoding="utf-8").replace("<head>", "<head>" + _FIRST, 1)
    at = text.rindex("</body>")
    inner = tmp_path / f"inner-{width}.html"
    inner.write_text(text[:at] + _LAST + text[at:], encoding="utf-8")
    # A window cannot be as narrow as a phone, but a frame can. Its own script hands over what the inner one found.
    frame = (
        f'<!DOCTYPE html><meta charset="utf-8"><iframe id="f" src="{inner.name}" '
        f'style="width:{width}px;height:800px;border:0">'
        '</iframe><script>const t = setInterval(() => { const p = document.getElementById("f").contentDocument?.'
        'getElementById("found"); if (p) { clearInterval(t); const o = document.createElement("pre"); o.id = "answer";'
        "o.textContent = p.textContent; document.body.append(o); } }, 50);</script>"
    )
    outer = tmp_path / f"outer-{width}.html"
    outer.write_text(frame, encoding="utf-8")
    command = [browser, *FLAGS, "--allow-file-access-from-files", f"--user-data-dir={tmp_path / f'profile-{width}'}"]
    command += ["--virtual-time-budget=20000", "--window-size=1200,900", "--dump-dom", outer.as_uri()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    answer = re.search(r'<pre id="answer">(.*?)</pre>', run.stdout, re.DOTALL)
    assert answer, f"the page gave no answer\n{run.stdout[-500:]}\n{run.stderr[-2000:]}"
    plain = answer.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    found: dict[str, Any] = json.loads(plain)
    return found


def check_page(path: Path, tmp_path: Path, *, widths: tuple[int, ...] = (400, 1200)) -> dict[str, Any]:
    """Assert what every page must keep: it is whole, has no errors, needs nothing else and fits a phone."""
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"""<[^>]*\s(?:src|href|action|srcset)\s*=\s*["']?(?!data:|#)[^"'\s>]""", text), (
        "the page refers to something outside"
    )
    assert not re.search(r"url\((?!#)|@import", text), "the style refers to something outside"
    assert not re.search(r"<[^>]*https?://", text), "a tag names an address"
    found: dict[str, Any] = {}
    for width in widths:
        found = inspect_page(path, tmp_path, width=width)
        assert found["errors"] == []
        assert found["requests"] == []
        assert found["scripts"] == 2, "a script beside the two that look"
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
