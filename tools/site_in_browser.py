"""Look at a built site in Chromium, served as a reader gets it: every page on a phone, the main pages also on a desk.

python -m tools.site_in_browser site artifacts/site

A page fails if it scrolls sideways, lacks a picture, logs an error or asks another host for something. The search
has to find what it is asked for. Pictures of the main pages are kept in the second folder, for people to look at.
"""

from __future__ import annotations

import functools
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PHONE, DESK = 390, 1280
#: How long a search may take, in milliseconds.
PATIENCE = 20_000
#: Pages that a reader meets first, one of each kind.
MAIN = (
    "index",
    "start",
    "install",
    "for/ml-engineers",
    "for/clinicians",
    "choose",
    "inference",
    "migrate",
    "cookbook/medical",
    "cookbook/llm",
    "pictures/index",
    "pictures/show_01_reliability",
    "reference/index",
    "reference/calibrant",
    "reference/calibrant.averaged_error",
    "reference/calibrant.recalibrate",
    "reference/calibrant.recalibrate.Platt",
    "reference/command-line",
    "benchmarks/RESULTS",
)
#: What is typed into the search, and the page that must be among the results.
SEARCHES = {"net benefit": "calibrant.net_benefit", "temperature": "calibrant.recalibrate.Temperature"}
#: Wider than the window by more than a rounded pixel; and pictures that did not load.
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth > 1"
MISSING = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing: requests that fail are reported by the browser."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder, served while the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def chromium() -> str | None:
    """The browser of this machine."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def faults(site: Path, pictures: Path) -> Iterator[str]:
    """What a reader would stumble over, page by page; pictures of the main pages are kept."""
    from playwright.sync_api import sync_playwright

    pictures.mkdir(parents=True, exist_ok=True)
    with served(site) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        for width, names in ((PHONE, _pages(site)), (DESK, [name for name in MAIN if _file(site, name).exists()])):
            page = browser.new_page(viewport={"width": width, "height": 900})
            said: list[str] = []
            _listen(page, address, said)
            for name in names:
                said.clear()
                yield from _visit(page, f"{address}/{name}.html", said, name, width)
                if name in MAIN:
                    place = pictures / f"{name.replace('/', '-')}-{width}.png"
                    page.screenshot(path=place, full_page=True, animations="disabled")
            yield from _searches(page, address, width)
        browser.close()


def _file(site: Path, name: str) -> Path:
    return site / f"{name}.html"


def _pages(site: Path) -> list[str]:
    """Every page but parts of the theme."""
    found = (path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html"))
    return sorted(name for name in found if not name.startswith("_"))


def _listen(page: Any, address: str, said: list[str]) -> None:
    """Keep what the page logs as an error, and what it asks of others."""
    page.on("console", lambda message: said.append(f"logs: {message.text}") if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(f"fails: {error}"))
    page.on("request", lambda asked: _asked(asked.url, address, said))


def _asked(url: str, address: str, said: list[str]) -> None:
    if not url.startswith((address, "data:", "blob:")):
        said.append(f"asks elsewhere: {url}")


def _visit(page: Any, url: str, said: list[str], name: str, width: int) -> Iterator[str]:
    page.goto(url, wait_until="load")
    if page.evaluate(SIDEWAYS):
        yield f"{name} at {width} px: scrolls sideways"
    for picture in page.evaluate(MISSING):
        yield f"{name} at {width} px: no picture {picture}"
    yield from (f"{name} at {width} px: {message}" for message in said)


def _searches(page: Any, address: str, width: int) -> Iterator[str]:
    """Type what a reader would; the page that explains it must be among the results."""
    for query, wanted in SEARCHES.items():
        page.goto(f"{address}/search.html", wait_until="load")
        box = page.locator("input[name=q]:visible").first
        box.fill(query)
        box.press("Enter")
        try:
            page.locator(f"#search-results a[href*='{wanted}']").first.wait_for(timeout=PATIENCE)
        except Exception as error:  # Playwright's own kind, which is not installed everywhere
            yield f"search at {width} px: {query!r} does not find {wanted} ({type(error).__name__})"


def main(site: str, pictures: str) -> int:
    """Print the faults; 1 if there are any."""
    if chromium() is None:
        print("Chromium is missing: `make chromium`.")
        return 1
    found = list(faults(Path(site), Path(pictures)))
    print("\n".join(found) if found else f"{site}: every page can be read at {PHONE} px, and the search finds.")
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
