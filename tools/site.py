"""Check a built site: every link and picture inside it leads somewhere, and no page loads anything from elsewhere.

python -m tools.site site
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that name a file the browser loads by itself; links of a head other than styles are only hints.
LOADED = {"img": "src", "script": "src", "source": "src", "iframe": "src"}


class _Page(HTMLParser):
    """The anchors of a page, what it links to and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADED and LOADED[tag] in given:
            self.loads.append(given[LOADED[tag]])
        if tag == "link" and given.get("rel") == "stylesheet" and "href" in given:
            self.loads.append(given["href"])


@cache
def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf8"))
    return page


def faults(site: Path) -> Iterator[str]:
    """What is wrong, page by page."""
    for path in sorted(site.rglob("*.html")):
        if "_static" in path.parts:  # parts of the theme, not pages
            continue
        page, name = _read(path), path.relative_to(site).as_posix()
        for address in page.loads:
            if urlsplit(address).scheme in {"http", "https"} or address.startswith("//"):
                yield f"{name} loads {address}"
        for address in {*page.links, *page.loads}:
            yield from _unreachable(site, path, name, address)


def _unreachable(site: Path, path: Path, name: str, address: str) -> Iterator[str]:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return
    target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
    if not target.is_relative_to(site.resolve()) and parts.path:
        yield f"{name} links outside the site: {address}"
    elif not target.exists():
        yield f"{name} links to nothing: {address}"
    elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in _read(target).anchors:
        yield f"{name} links to a missing place: {address}"


def main(site: str) -> int:
    """Print the faults; the number of them is the exit code, at most 1."""
    found = list(faults(Path(site)))
    print("\n".join(found) if found else f"{site}: every link leads somewhere.")
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
