"""Formulas as MathML, made when the site is built: pages need neither a script nor a network to show them."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert

SPACE = "http://www.w3.org/1998/Math/MathML"
#: What latex2mathml sets above a term for \overline; browsers do not stretch it without a font for mathematics.
BAR = "\u2015"
#: Longer formulas that are made of several are set in as many lines.
LONG = 80

ElementTree.register_namespace("", SPACE)


def _mathml(tex: str, display: str) -> str:
    tree = ElementTree.fromstring(str(convert(" ".join(tex.split()), display=display)))
    for over in tree.iter(f"{{{SPACE}}}mover"):
        if len(over) == 2 and over[1].text == BAR:
            over.tag = f"{{{SPACE}}}mrow"
            over.set("class", "mean")  # a line above, drawn by the style sheet
            over.remove(over[1])
    return ElementTree.tostring(tree, encoding="unicode")


def lines(tex: str) -> list[str]:
    r"""The formulas that \qquad separates, where together they are too long for a line."""
    parts = tex.split(r"\qquad")
    whole = all(part.count("{") == part.count("}") for part in parts)
    return parts if whole and len(" ".join(tex.split())) > LONG else [tex]


def _inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(translator: Any, node: nodes.math_block) -> None:
    shown = "".join(_mathml(line, "block") for line in lines(node.astext()))
    translator.body.append(f'<div class="formula">{shown}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Make this the way the site shows formulas."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
