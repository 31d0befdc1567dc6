"""Every numeric constant of the package, and why it has its value.

    python -m tools.constants                          # write docs/methods/constants.md
    python -m tools.constants --check                  # is that page up to date, and does each constant have a source?
    python -m tools.constants --mutate inference --sample 20 --seed 1

A constant is a name in capitals at the top level of a module whose value is made of numbers. The comment `#:` above it
says what it is and ends in its source: `Derived:`, `Reference:`, `Test:` (`tests/x.py::test_y`, which fails when the
value is doubled or halved) or `Speed:` (no result depends on it). One comment serves all constants directly below it.
`--mutate` doubles and halves constants one at a time in a copy of the project, runs the tests that their comments name,
and lists the constants for which neither change makes one fail.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.project import ROOT, Project, copy_project

PAGE = Path("docs/methods/constants.md")
#: Constants that may be without a source. Only lower it.
ALLOWED = 0
#: Seconds after which a changed constant counts as noticed: the test may not end.
TIMEOUT = 600

KINDS = ("Derived", "Reference", "Test", "Speed")
_NAME = re.compile(r"_*[A-Z][A-Z0-9_]*")
_SOURCE = re.compile(rf"(?:^|(?<=\s))({'|'.join(KINDS)}):\s+")
_TEST = re.compile(r"(?:tests|src)/[\w/]+\.py(?:::\s?\w+)*")
HEAD = """# Constants

Every number that has a name in the source, and why it has its value. This page is written by `make constants` from the
comments above the constants. *Derived*: it follows from something else. *Reference*: it is published. *Test*: this test
fails when the value is doubled or halved. *Speed*: no result depends on it.
"""


@dataclass(frozen=True)
class Constant:
    """One constant: where it is, its value as it is written, and its comment."""

    path: Path
    name: str
    value: str
    comment: str
    #: First and last line and column of the value.
    span: tuple[int, int, int, int]

    @property
    def module(self) -> str:
        """The module from the package's folder: `inference/gates`."""
        return self.path.relative_to("src/calibrant").with_suffix("").as_posix()

    @property
    def room(self) -> str:
        """The room of the module; modules of no room are in `calibrant`."""
        return self.module.partition("/")[0] if "/" in self.module else "calibrant"

    @property
    def what(self) -> str:
        """What it is: the first sentence of the comment."""
        return re.split(r"(?<=[.?!])\s", _SOURCE.split(self.comment)[0].strip())[0]

    @property
    def sources(self) -> list[tuple[str, str]]:
        """Kind and text of each source: `("Reference", "Brier (1950), p. 1.")`."""
        parts = [part.strip() for part in _SOURCE.split(self.comment)[1:]]
        return [(kind, text) for kind, text in zip(parts[::2], parts[1::2], strict=True) if text]

    @property
    def tests(self) -> list[str]:
        """The tests that guard it."""
        texts = [text for kind, text in self.sources if kind == "Test"]
        return [test.replace(" ", "") for text in texts for test in _TEST.findall(text)]

    @property
    def sourced(self) -> bool:
        """Whether it has a source; `Test:` must name one."""
        return any(kind != "Test" or _TEST.search(text) for kind, text in self.sources)


def constants(project: Project) -> list[Constant]:
    """All constants of the package in the order of the files."""
    return [found for path in project.modules.values() for found in constants_of(project.root, path)]


def constants_of(root: Path, path: Path) -> Iterator[Constant]:
    """The constants of one file."""
    text = (root / path).read_text(encoding="utf8")
    lines = text.splitlines()
    last_line, comment = 0, ""
    for node in ast.parse(text).body:
        own = _comment_above(lines, node.lineno)
        comment = own or (comment if node.lineno == last_line + 1 else "")
        last_line = node.end_lineno or node.lineno
        for name, value in _assigned(node):
            if _NAME.fullmatch(name) and is_numeric(value):
                span = (value.lineno, value.col_offset, value.end_lineno or 0, value.end_col_offset or 0)
                yield Constant(path, name, ast.unparse(value), comment, span)


def _comment_above(lines: list[str], line: int) -> str:
    """The text of the `#:` comment directly above a line."""
    found: list[str] = []
    while line > 1 and lines[line - 2].startswith("#:"):
        line -= 1
        found.insert(0, lines[line - 1].removeprefix("#:").strip())
    return " ".join(found)


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Names and values of an assignment; `A, B = 1, 2` has two."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        yield node.target.id, node.value
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = zip(target.elts, node.value.elts, strict=True)
                yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


def is_numeric(value: ast.expr) -> bool:
    """Whether a value is made of numbers: at least one, and nothing else but names and functions of them."""
    has_number = any(_is_number(node) for node in ast.walk(value))
    return has_number and _only_numbers(value)


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def _only_numbers(value: ast.expr) -> bool:
    match value:
        case ast.Constant():
            return _is_number(value)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return all(map(_only_numbers, parts))
        case ast.Dict(values=parts):
            return all(map(_only_numbers, parts))
        case ast.UnaryOp(operand=part) | ast.Starred(value=part):
            return _only_numbers(part)
        case ast.BinOp(left=left, right=right):
            return _only_numbers(left) and _only_numbers(right)
        case ast.Call(func=function, args=parts):
            return _is_function_of_numbers(function) and all(map(_only_numbers, parts))
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id="np"), attr="r_"), slice=part):
            return _only_numbers(part)
        case ast.Name(id=name):
            return bool(_NAME.fullmatch(name))
        case ast.Attribute(value=ast.Name(id="np" | "math")):
            return True
    return False


def _is_function_of_numbers(function: ast.expr) -> bool:
    names = {"float", "int", "tuple", "list", "dict", "frozenset", "set", "range", "MappingProxyType"}
    is_method = isinstance(function, ast.Attribute) and ast.unparse(function).partition(".")[0] in {"np", "math"}
    return is_method or (isinstance(function, ast.Name) and function.id in names)


def unknown_tests(root: Path, found: Iterable[Constant]) -> list[str]:
    """Tests that comments name and that do not exist."""
    wrong = []
    for constant, test in [(one, test) for one in found for test in one.tests]:
        file, *names = test.split("::")
        if not (root / file).exists() or not set(names) <= _defined(root / file):
            wrong.append(f"{constant.path}: {constant.name}: {test} does not exist")
    return wrong


@cache
def _defined(path: Path) -> set[str]:
    """Functions and classes in a file."""
    return {getattr(node, "name", "") for node in ast.walk(ast.parse(path.read_text(encoding="utf8")))}


def page(found: list[Constant]) -> str:
    """The whole page: counts by room and source, then a table for each room."""
    rooms = sorted({constant.room for constant in found})
    lines = [HEAD, f"| room | constants | {' | '.join(kind.lower() for kind in KINDS)} | no source |", "|---" * 7 + "|"]
    for room in [*rooms, "all"]:
        inside = [constant for constant in found if room in {constant.room, "all"}]
        kinds = [sum(kind in dict(constant.sources) for constant in inside) for kind in KINDS]
        counts = [len(inside), *kinds, sum(not constant.sourced for constant in inside)]
        lines.append(f"| {room} | {' | '.join(map(str, counts))} |")
    for room in rooms:
        lines += ["", f"## {room}", "", "| constant | value | what it is | source |", "|---|---|---|---|"]
        lines += [_row(constant) for constant in found if constant.room == room]
    return "\n".join([*lines, ""])


def _row(constant: Constant) -> str:
    source = "; ".join(
        text.rstrip(".") if kind != "Test" else ", ".join(f"`{test}`" for test in constant.tests)
        for kind, text in constant.sources
    )
    kinds = " and ".join(dict(constant.sources)).lower()
    value = constant.value if len(constant.value) <= 60 else f"{constant.value[:57]}..."
    cells = [f"`{constant.module}.{constant.name}`", f"`{value}`", constant.what, f"{kinds}: {source}" if kinds else ""]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def faults(project: Project, *, allowed: int = ALLOWED) -> list[str]:
    """What `--check` complains about."""
    found = constants(project)
    wrong = unknown_tests(project.root, found)
    unsourced = [constant for constant in found if not constant.sourced]
    if len(unsourced) > allowed:
        wrong += [f"{constant.path}: {constant.name} has no source" for constant in unsourced]
        wrong.append(f"{len(unsourced)} constants have no source, and {allowed} are allowed (tools/constants.py)")
    path = project.root / PAGE
    if not path.exists() or path.read_text(encoding="utf8") != page(found):
        wrong.append(f"{PAGE} is out of date: run `make constants`")
    return wrong


def changed_values(value: ast.expr) -> tuple[str, str]:
    """Source of a value with every number doubled, and halved; whole numbers change by at least one."""
    return _scaled(value, 2.0), _scaled(value, 0.5)


def _scaled(value: ast.expr, factor: float) -> str:
    match value:
        case ast.Tuple(elts=parts) if parts:
            return "(" + "".join(f"{_scaled(part, factor)}, " for part in parts) + ")"
        case ast.List(elts=parts):
            return f"[{', '.join(_scaled(part, factor) for part in parts)}]"
        case ast.Set(elts=parts):
            return f"{{{', '.join(_scaled(part, factor) for part in parts)}}}"
        case ast.Dict(keys=keys, values=parts):
            pairs = zip(keys, parts, strict=True)
            return f"{{{', '.join(f'{ast.unparse(key)}: {_scaled(part, factor)}' for key, part in pairs if key)}}}"
        case ast.Call(func=function, args=[ast.Tuple() | ast.List() | ast.Set() | ast.Dict() as part]):
            return f"{ast.unparse(function)}({_scaled(part, factor)})"
    try:
        number = eval(ast.unparse(value), {"__builtins__": {}})
    except (NameError, TypeError):
        return f"({ast.unparse(value)}) * {factor}"
    if isinstance(number, int):
        least = 1 if factor > 1 else -1
        scaled = round(number * factor)
        return str(scaled if abs(scaled - number) >= 1 and number else number + least)
    return repr(number * factor if number else factor - 1)


def unnoticed(project: Project, found: list[Constant]) -> Iterator[tuple[Constant, list[str]]]:
    """Constants with tests, each with the values that its tests do not tell from its own."""
    with tempfile.TemporaryDirectory(prefix="calibrant-") as folder:
        copy = copy_project(project.root, Path(folder))
        for constant in found:
            original = (copy / constant.path).read_bytes()
            expression = ast.parse(f"({_text_of(original, constant.span)})", mode="eval").body
            passed = []
            for value in changed_values(expression):
                (copy / constant.path).write_bytes(_with_value(original, constant.span, value))
                if _tests_pass(copy, constant.tests):
                    passed.append(value)
            (copy / constant.path).write_bytes(original)
            yield constant, passed


def _bounds(text: bytes, span: tuple[int, int, int, int]) -> tuple[int, int]:
    lines = text.splitlines(keepends=True)
    offsets = [sum(map(len, lines[: row - 1])) + column for row, column in (span[:2], span[2:])]
    return offsets[0], offsets[1]


def _text_of(text: bytes, span: tuple[int, int, int, int]) -> str:
    low, high = _bounds(text, span)
    return text[low:high].decode()


def _with_value(text: bytes, span: tuple[int, int, int, int], value: str) -> bytes:
    low, high = _bounds(text, span)
    return text[:low] + value.encode() + text[high:]


def _tests_pass(copy: Path, tests: list[str]) -> bool:
    """Whether tests pass in a copy of the project; those that never end do not."""
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "CI": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    try:
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _mutate(project: Project, room: str, *, sample: int | None, seed: int) -> int:
    inside = [
        one for one in constants(project) if one.tests and f"{one.module}/".startswith(f"{room}/" if room else "")
    ]
    chosen = random.Random(seed).sample(inside, min(sample, len(inside))) if sample else inside
    survivors = []
    for constant, passed in unnoticed(project, chosen):
        noticed = {0: "noticed", 1: f"noticed, but not {passed[:1]}"}.get(len(passed), "NOT NOTICED")
        print(f"{constant.module}.{constant.name} = {constant.value}: {noticed}", flush=True)
        survivors += [constant] * (len(passed) > 1)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} changed constants were noticed by the tests they name.")
    print(*(f"{constant.path}: {constant.name}: {', '.join(constant.tests)}" for constant in survivors), sep="\n")
    return bool(survivors)


def main(arguments: list[str] | None = None, *, root: Path = ROOT, allowed: int = ALLOWED) -> int:
    """Write the page, check it, or change constants."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if the page is out of date or a source is missing")
    parser.add_argument(
        "--mutate", nargs="?", const="", metavar="ROOM", help="change the constants of a room, or of all"
    )
    parser.add_argument("--sample", type=int, help="change this many, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    options = parser.parse_args(arguments)
    project = Project(root)
    if options.mutate is not None:
        return _mutate(project, options.mutate, sample=options.sample, seed=options.seed)
    if options.check:
        print(*(wrong := faults(project, allowed=allowed)), sep="\n", end="\n" if wrong else "")
        return bool(wrong)
    found = constants(project)
    path = project.root / PAGE
    path.parent.mkdir(exist_ok=True)
    path.write_text(page(found), encoding="utf8")
    missing = sum(not constant.sourced for constant in found)
    print(f"{PAGE}: {len(found)} constants, {missing} without a source ({allowed} allowed).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
