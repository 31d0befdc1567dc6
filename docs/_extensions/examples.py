"""Run the code of a page, top to bottom, and show what it prints and draws: no output of the site is typed by hand.

The pages hold code alone, or sessions of the interpreter with the part of the output that must hold (`0.2...`). The
site shows both as sessions with the whole output, and the figures below them; tests/test_docs.py runs the same code and
compares it with what the pages claim.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import re
import tempfile
import textwrap
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: A fenced block; one after the comment `<!-- notest -->` needs a cluster, or minutes.
BLOCK = re.compile(r"(<!-- notest -->\n)?^```python\n(.*?)^```\n", re.M | re.S)
#: Where the figures of pages go, within docs/.
FIGURES = "drawn"
#: A line of output is broken at this width, and cut at this length: nobody reads a page of SQL.
WIDTH, LONGEST = 76, 400


@dataclass(frozen=True)
class Step:
    """A statement, what the page says that it prints, and what it printed."""

    source: str
    line: int
    wanted: str
    printed: str


def blocks(text: str) -> list[tuple[int, str]]:
    """Line number and code of the blocks that are to run."""
    return [(text[: found.start(2)].count("\n"), found[2]) for found in BLOCK.finditer(text) if not found[1]]


def run(code: str, names: dict[str, Any]) -> list[Step]:
    """Run a block in a namespace, statement by statement."""
    return [Step(source, line, wanted, _printed(source, names, wanted)) for source, line, wanted in _statements(code)]


def _statements(code: str) -> Iterator[tuple[str, int, str]]:
    """Source, line and promised output of every statement."""
    if ">>>" in code:
        for example in doctest.DocTestParser().get_examples(code):
            yield example.source, example.lineno, example.want
        return
    lines = code.splitlines(keepends=True)
    starts = [_first_line(node) - 1 for node in ast.parse(code).body]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield "".join(lines[start:end]), start, ""


def _first_line(node: ast.stmt) -> int:
    """Decorators stand above what they decorate."""
    return min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", []))])


def _printed(source: str, names: dict[str, Any], wanted: str) -> str:
    """What a statement prints, or the last line of its error where the page promises one."""
    heard = io.StringIO()
    with contextlib.redirect_stdout(heard):
        try:
            tree = ast.parse(source)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "<page>", "exec"), names)
            if last is not None:
                _show(eval(compile(ast.Expression(last.value), "<page>", "eval"), names))
        except Exception as error:
            if not wanted.startswith("Traceback"):
                raise
            return "Traceback (most recent call last):\n" + "".join(traceback.format_exception_only(error))
    return heard.getvalue()


def _show(value: Any) -> None:
    """As the interpreter would, but for the axes of figures, which are drawn instead."""
    if value is not None and not type(value).__module__.startswith("matplotlib"):
        print(repr(value))


def session(code: str, steps: list[Step]) -> str:
    """The block with its output, as the interpreter shows it; code that prints nothing stays as it is."""
    if not any(step.printed for step in steps):
        return code
    lines = []
    for step in steps:
        source = step.source.rstrip().split("\n")
        lines += [">>> " + source[0], *("... " + line if line else "..." for line in source[1:])]
        lines += _laid_out(step.printed.rstrip("\n").split("\n")) if step.printed else []
    return "\n".join(lines) + "\n"


def _laid_out(lines: list[str]) -> list[str]:
    """A single long line in several; the lines of a table as they are."""
    if len(lines) > 1:
        return lines
    line = lines[0] if len(lines[0]) <= LONGEST else f"{lines[0][:LONGEST]} …"
    return textwrap.wrap(line, WIDTH, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False)


def shown(text: str, folder: Path, name: str) -> str:
    """A page with what its code prints and draws."""
    names: dict[str, Any] = {"__name__": "page"}
    number = 0

    def replaced(found: re.Match[str]) -> str:
        nonlocal number
        if found[1]:
            return found[0]
        block = f"```python\n{session(found[2], run(found[2], names))}```\n"
        drawn = []  # in one paragraph, so that they stand beside each other where there is room
        for figure in figures():
            number += 1
            figure.savefig(folder / f"{name}-{number}.png", dpi=130, bbox_inches="tight", pad_inches=0.08)
            drawn.append(f"![What this code draws](/{FIGURES}/{name}-{number}.png)")
        return block + (f"\n{' '.join(drawn)}\n" if drawn else "")

    try:
        return BLOCK.sub(replaced, text)
    finally:
        figures()


def figures() -> list[Any]:
    """The figures drawn since the last call."""
    import matplotlib.pyplot as plt

    found = [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    return found


def _read(app: Any, name: str, text: list[str]) -> None:
    path = Path(app.env.doc2path(name))
    made = name.split("/")[0] in {"reference", "pictures", "benchmarks", "reproduce"}
    if made or path.suffix != ".md" or not blocks(text[0]):
        return
    import matplotlib as mpl

    kept = Path(app.srcdir) / FIGURES
    kept.mkdir(exist_ok=True)
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings(), mpl.rc_context():
        warnings.simplefilter("ignore")
        mpl.use("Agg")
        os.chdir(place)
        try:
            text[0] = shown(text[0], kept, name.replace("/", "-"))
        finally:
            os.chdir(before)


def setup(app: Any) -> dict[str, bool]:
    """Run a page when it is read; all of them when this file has changed."""
    app.add_config_value("examples_shown_by", Path(__file__).read_text(encoding="utf8"), "env")
    app.connect("source-read", _read)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
