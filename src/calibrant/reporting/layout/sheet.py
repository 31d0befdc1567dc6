"""The page around its parts: one file with its style and its one script inside, which loads and sends nothing."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from calibrant._version import __version__
from calibrant.reporting.drawing.markup import Child, Markup, joined, tag


def sheet(title: str, *parts: Child) -> str:
    """The whole HTML text; the policy names style and script by their hashes, so that nothing else can run."""
    style, script = style_text(), _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"calibrant {__version__}"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    body = tag(
        "body",
        tag("a", "Skip to the verdict", class_="skip", href="#main"),
        tag("div", *parts, class_="page"),
        tag("div", id="tip", role="presentation"),
        tag("script", Markup(script)),
        class_="calibrant",
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def footer() -> Markup:
    """Version, and that the file is complete."""
    words = (f"Calibrant {__version__}", "This file is complete: it loads nothing and sends nothing.")
    back = tag("span", tag("a", "Back to the verdict", href="#main"))
    return tag("footer", *(tag("span", text) for text in words), back)


@cache
def style_text() -> str:
    """The style of the page."""
    return _asset("figures.css") + _asset("page.css")


@cache
def fragment_style() -> Markup:
    """The style of figures, tables and verdict for a notebook; it reaches nothing outside."""
    return tag("style", joined([Markup(_asset("figures.css"))]))


@cache
def _asset(name: str) -> str:
    return files("calibrant.reporting").joinpath("assets", name).read_text(encoding="utf8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
