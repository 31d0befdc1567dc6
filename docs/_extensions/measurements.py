"""Bring the measured results from where their scripts write them, so that the pages can link to them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

FOLDERS = ("benchmarks", "reproduce")
KINDS = {".md", ".png", ".svg"}


def _copy(app: Any) -> None:
    source = Path(app.srcdir)
    for folder in FOLDERS:
        there = source / folder
        shutil.rmtree(there, ignore_errors=True)
        for path in sorted((source.parent / folder).rglob("*")):
            if path.suffix in KINDS:
                copy = there / path.relative_to(source.parent / folder)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)
        _list(there)


def _list(folder: Path) -> None:
    """The page of all results leads to the page of each subject."""
    names = [f"results/{path.stem}" for path in sorted((folder / "results").glob("*.md"))]
    with (folder / "RESULTS.md").open("a", encoding="utf8") as page:
        page.write("\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n")


def _links(_app: Any, _name: str, text: list[str]) -> None:
    """In the repository the results lie outside docs/, on the site inside."""
    text[0] = re.sub(r"\]\(\.\./((?:\.\./)*(?:benchmarks|reproduce)/)", r"](\1", text[0])


def setup(app: Any) -> dict[str, bool]:
    """Copy before any page is read; repair links as pages are read."""
    app.connect("builder-inited", _copy, priority=100)
    app.connect("source-read", _links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
