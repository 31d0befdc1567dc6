"""What readers see instead of the names in code (`assets/names.md`), and nouns in the plural."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from calibrant.results.estimate import Estimate, Significance
from calibrant.table.binning import EqualMass, EqualWidth


class Name(NamedTuple):
    """A name for readers, and one line on what it is."""

    text: str
    line: str


@cache
def asset(name: str) -> str:
    """A file that pages are made with: a text, a style sheet or a script."""
    return files("calibrant.reporting").joinpath("assets", name).read_text(encoding="utf8")


@cache
def _known(kind: str) -> dict[str, Name]:
    """The names of a kind by those in code, in the order of the file."""
    _, _, section = asset("names.md").partition(f"## {kind}\n")
    _, _, rows = section.partition("\n\n## ")[0].partition("| --- |\n")
    cells = ([cell.strip() for cell in row.strip("|").split("|")] for row in rows.splitlines())
    return {code: Name(text, line) for code, text, line in cells}


def name_of_estimate(estimate: Estimate) -> Name:
    """The name with its norm and bins, and one line on what it is."""
    base, _, norm = estimate.name.partition(" (")
    text, line = _known("Estimates").get(base, (base, ""))
    rule = None if estimate.bins is None else getattr(estimate.bins.cut, "rule", None)
    if base in ("ECE", "ENCE", "UCE") and isinstance(rule, EqualWidth | EqualMass):
        kind = "" if base != "ECE" else "equal-width " if isinstance(rule, EqualWidth) else "equal-mass "
        return Name(f"{text}, {rule.n_bins} {kind}bins", line)
    if "nominal" in estimate.details:
        return Name(f"{text} of {100 * estimate.details['nominal']:.6g} % intervals", line)
    return Name(f"{text} ({norm}" if norm else text, line)


def name_of_test(test: Significance) -> Name:
    """The name of a test with its number of simulations, and the question it asks."""
    known = _known("Tests").items()
    text, line = next((name for start, name in known if test.method.startswith(start)), (test.method, ""))
    return Name(f"{text} ({test.draws:,} simulations)" if test.draws else text, line)


def name_of_map(map_class: str) -> str:
    """The name of a recalibration map in tables, from that of its class."""
    return _known("Maps").get(map_class, (map_class, ""))[0]


def remaining_error(loss: str) -> tuple[str, str]:
    """What is left after a map that is judged by a loss, and its unit."""
    return {"CRPS": ("ENCE", "%"), "negative log likelihood": ("ENCE", "%")}.get(loss, ("error", "points"))


def map_in_sentence(name: str, *, start: bool = False) -> str:
    """The name of a map, from its class or as in tables, in a sentence; `start` where it begins one."""
    name = name_of_map(name)
    text = next((words for shown, words in _known("Maps").values() if shown == name and words), name)
    if start:
        return first_up(text)
    return text if text.startswith(("Platt", "Dirichlet")) else text[:1].lower() + text[1:]


_IRREGULAR = {
    "person": "people", "child": "children", "man": "men", "woman": "women", "loss": "losses",
    "analysis": "analyses", "crisis": "crises", "diagnosis": "diagnoses", "prognosis": "prognoses",
}  # fmt: skip
#: Words of letters only.
_WORDS = re.compile(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*")
#: Of a noun with one of these, the last word is not the one that has a plural.
_JOINING = {"after", "and", "at", "before", "by", "for", "from", "in", "of", "on", "or", "over", "to", "with", "within"}
#: What a noun that has no plain plural is the name of.
_KINDS = {"event": "of", "row": "of", "group": "by"}


def plural(noun: str, number: float | None = None, *, kind: str = "row") -> str:
    """A noun in the plural, or as it is for exactly one; where it has no plain plural, "rows of" it.

    `kind` is what the noun names: an event, a row or a column of groups.
    """
    if not noun:
        return noun
    *before, last = re.split(r"(\s+)", noun)
    lower = last.lower()
    irregular = _IRREGULAR.get(lower)
    words = re.split(r"[ -]", noun.lower())
    if not _WORDS.fullmatch(noun) or _JOINING & set(words) or (lower.endswith("is") and irregular is None):
        return f"{kind if number == 1 else f'{kind}s'} {_KINDS[kind]} {noun}"
    if number == 1 or (irregular is None and re.search(r"[^su]s$", lower)):  # "deaths" is a plural already
        return noun
    if irregular is not None:
        last = irregular
    elif re.search(r"[^aeiou]y$", lower):
        last = f"{last[:-1]}ies"
    elif lower.endswith(("s", "x", "z", "ch", "sh")):
        last = f"{last}es"
    else:
        last = f"{last}s"
    return "".join([*before, last])


def had_the_event(event: str) -> str:
    """What is said of rows with the event: "had the event", with its name where it has one."""
    return "had the event" if event == "event" else f'had the event "{event}"'


def first_up(text: str) -> str:
    """The text with its first letter large."""
    return text[:1].upper() + text[1:]


def shortened(name: str, most: int) -> str:
    """A name in at most so many letters."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def listed(words: list[str] | tuple[str, ...]) -> str:
    """Several words: "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
