"""Every number with an interval that a page prints, as it is made: one quantity must read the same everywhere.

`recorded` notes the text of each number while a report, its page, its Markdown and its plain text are made: tooltips,
captions and descriptions of figures too, which reading the page again would miss.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from contextlib import contextmanager
from importlib import import_module
from pkgutil import walk_packages

import calibrant.reporting
from calibrant.reporting import rounding
from calibrant.reporting.rounding import MINUS, negated


def modules():
    path = calibrant.reporting.__path__
    return [import_module(one.name) for one in walk_packages(path, "calibrant.reporting.")]


def place():
    """The nearest line outside of the rounding."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.endswith(("rounding.py", "printed.py")):
        frame = frame.f_back
    return "" if frame is None else f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"


def decimals(text, scale):
    """The decimals of a printed number, of the number as it is without the scale."""
    return len(text.partition(".")[2]) + round(math.log10(scale))


@contextmanager
def recorded():
    """By value and interval: the decimals that were printed, and where."""
    found = defaultdict(lambda: defaultdict(set))
    original = rounding.rounded

    def noting(value, *, scale=1.0, **options):
        made = original(value, scale=scale, **options)
        if made.ends and math.isfinite(value.low) and math.isfinite(value.high):
            same = negated(value) if value.value < 0 else value
            key = tuple(float(f"{end + 0.0:.9g}") for end in (same.value, same.low, same.high))
            found[key][decimals(made.value.removeprefix(MINUS), scale)].add(place())
        return made

    before = [module for module in modules() if getattr(module, "rounded", None) is original]
    try:
        for module in before:
            module.rounded = noting
        yield found
    finally:
        for module in before:
            module.rounded = original


def targets(node, triple):
    """What frequencies with this value and interval are compared with: two of them are two quantities."""
    if isinstance(node, list):
        return set().union(*(targets(one, triple) for one in node), set())
    if not isinstance(node, dict):
        return set()
    seen = node.get("observed") or node.get("ratio")
    own = set()
    if isinstance(seen, dict) and all(
        end is not None and math.isclose(end, known, rel_tol=1e-6, abs_tol=1e-9)
        for end, known in zip((seen.get("value"), seen.get("low"), seen.get("high")), triple, strict=True)
    ):
        own = {node.get("predicted", node.get("nominal", node.get("ideal")))}
    return own.union(*(targets(one, triple) for one in node.values()), set())


def printed_differently(found, raw):
    """Quantities that were printed with several numbers of decimals; `raw` is the report as JSON."""
    for triple, texts in found.items():
        if len(texts) > 1 and len(targets(raw, triple)) < 2:
            yield f"{triple} has {', '.join(f'{digits} decimals in {sorted(at)}' for digits, at in texts.items())}"
