"""HTML and SVG made of elements, so that text is escaped wherever it comes from."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from calibrant.reporting.rounding import no_break
from calibrant.results.estimate import printable


class Markup(str):
    """Text that is HTML or SVG already; any other text is escaped when it becomes part of an element."""

    __slots__ = ()


#: What stands for a child of an element: nothing, text to be escaped, or markup.
Child = str | None
#: Elements whose text is copied or read by machines: nothing in it is changed for the eye.
_VERBATIM = frozenset({"code", "pre", "script", "style"})
#: Elements without an end tag.
_VOID = frozenset({"br", "circle", "input", "line", "meta", "path", "rect"})


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """One element. Underscores in the names of attributes stand for hyphens; None and False leave an attribute out."""
    inside = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VERBATIM:
        return Markup(f"<{name}{inside}>{joined(children, verbatim=True)}</{name}>")
    if name in _VOID and not children:
        return Markup(f"<{name}{inside}/>")
    return Markup(f"<{name}{inside}>{joined(children)}</{name}>")


def joined(parts: Iterable[Child], *, verbatim: bool = False) -> Markup:
    """The parts one after the other; text is escaped and, unless `verbatim`, keeps numbers and signs on one line."""
    texts = []
    for part in parts:
        if isinstance(part, Markup):
            texts.append(str(part))
        elif part is not None:
            texts.append(escaped(part if verbatim else no_break(part)))
    return Markup("".join(texts))


def escaped(text: str) -> str:
    """`text` for HTML: control characters are written out, except ends of lines."""
    if not text.isprintable():
        text = "\n".join(printable(line) for line in text.split("\n"))
    return escape(text)


def number(value: float) -> str:
    """A coordinate: one decimal, and none where it is a whole number."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.removesuffix("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = escaped(value) if isinstance(value, str) else number(float(str(value)))
    return f' {name}="{text}"'
