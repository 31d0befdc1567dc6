"""Texts that try to become markup, links or terminal commands, in every place where `report` takes a text."""

from __future__ import annotations

import json
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from markdown_it import MarkdownIt

import calibrant as cal
from calibrant.table.binning import Distinct
from calibrant.table.bintable import merge

HOSTILE = (
    "![t](https://x.example/track.png)",
    "[click](javascript:alert(1))",
    "<https://x.example> https://x.example www.x.example",
    "<img src=x onerror=alert(1)>",
    '"><script>alert(1)</script><!--',
    "</title></style></svg><b>",
    "**bold** _it_ ~~no~~ `code` ``` $x$",
    "a | b \\| c \\",
    "# heading #",
    "- item\n\n1. item\n\n> quote\n\n---",
    "| a |\n|---|\n| b |",
    "[ref]: https://x.example\n[^1]: note &lt;b&gt; &#60;b&#62;",
    "\x1b]0;title\x07\x1b[31mred\x1b[2J",
    "nul \x00 tab \t bell \x07 \r\nline",
    "\u202egnp.exe\u202c \u2066x\u2069 \u200e",
    "'; DROP TABLE scores; -- {{ 7 * 7 }} ${x} %s {0}",
    "1. \ud800",
    "long " * 400,
)
#: What a line of our Markdown holds.
_INLINE = {"text", "strong_open", "strong_close", "softbreak"}
_CONTROLS = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def texts(rng):
    """As many hostile texts as `report` takes, the same ones for a seed."""
    return iter(rng.permutation(np.array(HOSTILE, dtype=object)).tolist())


def binary(rng, name):
    p = rng.random(240)
    by = {next(name): np.array([next(name), next(name)], dtype=object)[np.arange(240) % 2]}
    months = np.array([next(name), next(name)], dtype=object)[np.arange(240) // 120]
    return cal.Binary(rng.random(240) < p**3, p), {"by": by, "time": {next(name): months}, "threshold": 0.5}


def classes(rng, name):
    p = rng.dirichlet(np.ones(3), 240)
    names = np.array([next(name) for _ in range(3)], dtype=object)
    y = names[(rng.random((240, 1)) > p.cumsum(axis=1)).sum(axis=1)]
    return cal.Multiclass(y, p**2 / (p**2).sum(axis=1, keepdims=True), classes=names.tolist()), {}


def forecasts(rng, name):
    by = {next(name): np.array([next(name), next(name)], dtype=object)[np.arange(120) % 2]}
    return cal.Gaussian(2 * rng.normal(size=120), np.zeros(120), np.ones(120)), {"by": by}


def unlabeled(rng, name):
    return cal.PositiveUnlabeled(rng.beta(3, 3, 80), rng.beta(1, 4, 200), prior=0.2), {"by": {next(name): range(280)}}


def tables(rng, name):
    cells = [cal.BinTable.of(cal.Binary(rng.random(90) < 0.3, rng.random(90)), Distinct()) for _ in range(2)]
    by, time = ({next(name): one for one in cells} for _ in range(2))
    return merge(cells), {"by": by, "time": time}


def hostile_texts(rng, folder):
    """A report with hostile texts everywhere says them in every format, and they do nothing there."""
    make, name = (binary, classes, forecasts, unlabeled, tables)[int(rng.integers(5))], texts(rng)
    data, options = make(rng, name)
    given = {key: next(name) for key in ("title", "model", "event", "row", "source")}
    found = cal.report(data, **given, **options)
    check_report(found, Path(folder))


def check_report(found, folder):
    """Every format of a report: no control characters, no markup but ours, and JSON that holds the texts as given."""
    plain, markdown, page, fragment = str(found), found.to_markdown(), found.to_html(), found._repr_html_()
    for text in (plain, repr(found), markdown, page, fragment):
        odd = {character for character in text if unicodedata.category(character) in _CONTROLS} - {"\n"}
        assert not odd, f"control characters {odd}"
    check_markdown(markdown)
    for text in (page, fragment):
        check_html(text)
    assert json.loads(found.to_json())["title"] == found.title
    for suffix in (".md", ".json", ".html"):
        assert found.save(folder / f"report{suffix}").stat().st_size > 0


def check_markdown(text):
    """Nothing but headings, lists, tables and bold words: no link, image, code, emphasis or HTML."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parser.parse(text)
    assert sum(token.type == "table_open" for token in tokens) == len(re.findall(r"^\| --- ", text, re.MULTILINE)) > 0
    for token in tokens:
        assert token.type not in ("fence", "code_block", "html_block", "hr", "blockquote_open"), token
        if token.type == "heading_open":
            assert token.tag in ("h1", "h2"), token
        odd = {child.type for child in token.children or ()} - _INLINE
        assert not odd, f"{odd} in {token.content!r}"
    assert not re.search(r"(?i)https?://|www\.", text), "a bare address becomes a link on many sites"
    assert sum(line.startswith("# ") for line in text.splitlines()) == 1


class _Elements(HTMLParser):
    """Elements and attributes that can act."""

    def __init__(self):
        super().__init__()
        self.odd = []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name.startswith("on") or name in ("src", "srcset", "action", "formaction", "style", "xlink:href"):
                self.odd.append((tag, name, value))
            if name == "href" and not (value or "").startswith(("#", "https://calibrant", "docs/")):
                self.odd.append((tag, name, value))
        if tag in ("img", "iframe", "object", "embed", "form", "base", "link"):
            self.odd.append((tag, attributes))


def check_html(text):
    """No element or attribute that loads, sends or runs anything, and the one script and style of a page."""
    parser = _Elements()
    parser.feed(text)
    assert not parser.odd, parser.odd
    assert text.count("<script") <= 1
    assert text.count("<title") <= 1 + text.count("<svg")
