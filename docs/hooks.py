"""What the site needs beyond Markdown: a page per estimator from its docstring, formulas as MathML, results of runs.

Formulas become MathML when the site is built, so that pages need no script and no network to show them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import calibrant

ROOT = Path(__file__).parents[1]
#: Measured results, which pages link to where they lie in the repository.
RESULTS = ("benchmarks", "reproduce")
FENCE = re.compile(r"(^ *```.*?^ *```|`[^`\n]+`)", re.M | re.S)


def on_config(config: Any) -> Any:
    """Put the generated pages into the navigation."""
    pages = [{name: f"estimators/{name}.md"} for name in estimators()]
    for entry in config.nav:
        if entry.get("Estimators") == "estimators/index.md":
            entry["Estimators"] = ["estimators/index.md", *pages]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the page of each estimator, the list of them, and the results."""
    from mkdocs.structure.files import File

    for name in estimators():
        files.append(File.generated(config, f"estimators/{name}.md", content=page(name)))
    lines = [f"| [`{name}`]({name}.md) | {_summary(getattr(calibrant, name))} |" for name in estimators()]
    table = "\n".join(["# Estimators and other functions", "", "| name | gives |", "|---|---|", *lines, ""])
    files.append(File.generated(config, "estimators/index.md", content=table))
    for folder in RESULTS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".md", ".png", ".svg"}:
                there = path.relative_to(ROOT).as_posix()
                files.append(File.generated(config, there, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Formulas to MathML; links that leave docs/ for the results, which on the site lie inside."""
    if page.file.src_uri.startswith("estimators/"):
        return markdown
    markdown = re.sub(r"\]\(\.\./((?:\.\./)*(?:benchmarks|reproduce)/)", r"](\1", markdown)
    parts = FENCE.split(markdown)
    parts[::2] = [re.sub(r"\$\$(.+?)\$\$", lambda m: formula(m[1]), part, flags=re.S) for part in parts[::2]]
    return "".join(parts)


def estimators() -> list[str]:
    """The public functions of the package."""
    return [name for name in calibrant.__all__ if inspect.isfunction(getattr(calibrant, name))]


def page(name: str) -> str:
    """The page of one function."""
    function = getattr(calibrant, name)
    signature = f"calibrant.{name}{inspect.signature(function)}".replace("'", "")
    return "\n\n".join([f"# {name}", f"```python\n{_wrapped(signature)}\n```", *_sections(inspect.getdoc(function))])


def formula(tex: str, *, display: str = "block") -> str:
    """MathML, or the TeX itself as code where its converter is missing or does not know a command."""
    try:
        from latex2mathml.converter import convert

        made = re.sub(r"[*_`]", lambda m: f"&#{ord(m[0])};", convert(" ".join(tex.split()), display=display))
    except Exception:  # a formula that cannot be shown must not stop the site
        return f"`{' '.join(tex.split())}`" if display == "inline" else f"\n```tex\n{tex.strip()}\n```\n"
    return made if display == "inline" else f"\n\n<div>{made}</div>\n\n"


def _summary(function: Any) -> str:
    return _inline((inspect.getdoc(function) or "").split("\n")[0]).replace("|", "\\|")


def _wrapped(signature: str) -> str:
    """One argument per line where they do not fit on one."""
    return signature if len(signature) < 90 else re.sub(r", (?![^\[(]*[\])][^(]*$)", ",\n    ", signature)


def _sections(doc: str | None) -> Iterator[str]:
    """A numpydoc docstring as Markdown, section by section."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$", doc or "", flags=re.M)
    yield _prose(parts[0])
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        yield f"## {title}"
        if title in {"Parameters", "Returns", "Attributes"}:
            yield _definitions(body)
        elif title == "Examples":
            yield f"```pycon\n{body.strip()}\n```"
        else:
            yield _prose(body)


def _definitions(body: str) -> str:
    """`name : type` with an indented text, as a list."""
    items = re.split(r"\n(?=\S)", body.strip())
    lines = []
    for item in items:
        head, _, text = item.partition("\n")
        name, _, kind = (part.strip() for part in head.partition(" : "))
        text = " ".join(inspect.cleandoc(text).split())
        lines.append(f"- **{name}**" + (f" ({kind})" if kind else "") + (f": {_inline(text)}" if text else ""))
    return "\n".join(lines)


def _prose(text: str) -> str:
    """Paragraphs, with `.. math::` blocks (the directive's line and what is indented below it) as formulas."""
    pattern = r"^\.\. math::(.*(?:\n(?:[ ]+\S.*|[ ]*(?=\n[ ]+\S)))*)"
    parts = re.split(pattern, text.strip(), flags=re.M)
    parts[::2] = [_inline(part) for part in parts[::2]]
    parts[1::2] = [formula(part) for part in parts[1::2]]
    return "".join(parts)


def _inline(text: str) -> str:
    text = re.sub(r":math:`([^`]+)`", lambda m: formula(m[1], display="inline"), text)
    return text.replace("``", "`")
