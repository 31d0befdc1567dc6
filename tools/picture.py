"""The picture of the README: the page that its command writes, drawn by Chromium.

python -m tools.picture           # whether the picture shows the page that the command writes now
python -m tools.picture --write   # draw it

A picture carries the words above the findings of its page, so that a test can read them without a browser.
"""

from __future__ import annotations

import re
import struct
import sys
import tempfile
import zlib
from html.parser import HTMLParser
from pathlib import Path

from tools.readme import README, SHOWN, run
from tools.site_in_browser import DESK, FLAGS, chromium

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "report.png"
#: Where the words end that a picture carries, and the last section that it shows.
STOP, LAST = '<section id="findings"', "#diagram"
KEYWORD = b"Description"


class _Words(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)


def words(page: str) -> str:
    """The words of a page above its findings."""
    reader = _Words()
    reader.feed(page[page.index("<main") : page.index(STOP)])
    return re.sub(r"\s+", " ", " ".join(reader.found)).strip()


def page() -> str:
    """The page that the command of the README writes."""
    found = SHOWN.search(README.read_text(encoding="utf8"))
    assert found is not None
    return run(found[1])[1]


def draw(source: str) -> bytes:
    """The upper part of a page as a picture, down to the end of its diagram."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "report.html"
        file.write_text(source, encoding="utf8")
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        shown = browser.new_page(viewport={"width": DESK, "height": 900}, color_scheme="light", reduced_motion="reduce")
        shown.goto(file.as_uri())
        height = shown.evaluate(f"Math.ceil(document.querySelector('{LAST}').getBoundingClientRect().bottom)")
        drawn = shown.screenshot(
            full_page=True, clip={"x": 0, "y": 0, "width": DESK, "height": height + 24}, animations="disabled"
        )
        browser.close()
    return with_words(drawn, words(source))


def with_words(picture: bytes, text: str) -> bytes:
    """A PNG with a chunk of text before its end (PNG specification, 11.3.4.5: iTXt)."""
    body = b"iTXt" + KEYWORD + b"\0\0\0\0\0" + text.encode()
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return picture[:-12] + chunk + picture[-12:]  # the last chunk, IEND, has twelve bytes


def carried(picture: bytes) -> str | None:
    """The words that a picture carries."""
    place = 8
    while place < len(picture):
        (length,) = struct.unpack_from(">I", picture, place)
        kind, body = picture[place + 4 : place + 8], picture[place + 8 : place + 8 + length]
        if kind == b"iTXt" and body.startswith(KEYWORD + b"\0"):
            return body[len(KEYWORD) + 5 :].decode()
        place += length + 12
    return None


def size(picture: bytes) -> tuple[int, int]:
    """Width and height."""
    width, height = struct.unpack_from(">II", picture, 16)
    return width, height


def main() -> int:
    """Exit 1 where the picture shows another page."""
    source = page()
    if "--write" in sys.argv:
        PICTURE.write_bytes(draw(source))
        return 0
    agrees = carried(PICTURE.read_bytes()) == words(source)
    print(f"{PICTURE.name} agrees." if agrees else f"{PICTURE.name} is out of date: run `make readme`.")
    return int(not agrees)


if __name__ == "__main__":
    sys.exit(main())
