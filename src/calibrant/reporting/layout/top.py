"""The first screen: title and facts, the verdict, three numbers, the list of sections, and the findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from calibrant.reporting.contents import Contents, Number, State, Value, Verdict
from calibrant.reporting.drawing.forest import gauge
from calibrant.reporting.drawing.markup import Markup, tag
from calibrant.reporting.layout.elements import Block, icon, rich
from calibrant.reporting.names import plural
from calibrant.reporting.rounding import count, rate
from calibrant.reporting.tables import number_texts

if TYPE_CHECKING:
    from calibrant.reporting.model import Finding

_KINDS = {
    "binary": "binary probabilities",
    "top label": "confidence in the predicted class",
    "classes": "class probabilities",
    "regression": "forecasts with their uncertainty",
    "unlabeled": "positive and unlabeled rows",
}
_STATES: dict[State, str] = {
    "not calibrated": "Not calibrated",
    "small": "Significant but small",
    "not significant": "No significant miscalibration",
    "too few": "Too few {events} to judge",
    "cannot be judged": "Cannot be judged",
}


def kicker(contents: Contents) -> str:
    """What kind of predictions the report is about."""
    if contents.kind == "classes" and contents.facts.classes is not None:
        return f"Calibration report · {contents.facts.classes} classes"
    return f"Calibration report · {_KINDS[contents.kind]}"


def header(contents: Contents, title: str) -> Markup:
    """Kind, title, the button for light and dark, and the line of facts."""
    words = tag("div", tag("p", kicker(contents), class_="kicker"), tag("h1", title))
    first = tag("div", words, tag("button", "Dark", type="button", class_="theme"), class_="top")
    return tag("header", first, facts(contents))


def facts(contents: Contents) -> Markup:
    """The line of facts; what is not known is left out."""
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in fact_list(contents)]
    return tag("dl", *pairs, class_="facts")


def fact_list(contents: Contents) -> list[tuple[str, str]]:
    """Names and values of the facts that are known."""
    known = contents.facts
    found = [(plural(known.row).capitalize(), count(known.rows))]
    if known.effective_rows is not None:
        found.append(("Effective number", count(known.effective_rows)))
    if known.clusters is not None:
        found.append(("Groups of dependent rows", count(known.clusters)))
    if known.classes is not None:
        found.append(("Classes", count(known.classes)))
    confidence = contents.kind in ("top label", "classes")
    unlabeled = contents.kind == "unlabeled"
    if known.events is not None and not confidence:
        name = "Labelled positives" if unlabeled else plural(known.event).capitalize()
        share = "" if known.base_rate is None or unlabeled else f" ({rate(known.base_rate)})"
        found.append((name, f"{count(known.events)}{share}"))
    if known.base_rate is not None and (confidence or unlabeled or known.events is None):
        name = "Accuracy" if confidence else "Assumed share of positives" if unlabeled else "Base rate"
        found.append((name, rate(known.base_rate)))
    if known.mean_prediction is not None:
        found.append(("Mean confidence" if confidence else "Mean prediction", rate(known.mean_prediction)))
    for name, text in (("Period", known.period), ("Model", known.model), ("Data", known.source)):
        if text:
            found.append((name, text))
    return found


def verdict(found: Verdict, event: str) -> Markup:
    """The answer with how sure, what it means and what to do."""
    state = _STATES[found.state].format(events=plural(event))
    answers = [("How sure", found.how_sure), ("What it means", found.what_it_means), ("What to do", found.what_to_do)]
    three = [tag("div", tag("h3", name), tag("p", rich(text))) for name, text in answers if text]
    return tag(
        "div",
        tag("h2", "Verdict", class_="vh"),
        tag("p", icon(found.severity), state, class_="state"),
        tag("p", found.sentence, class_="say"),
        tag("p", found.second, class_="more") if found.second else None,
        tag("div", *three, class_="three") if three else None,
        class_=f"verdict {found.severity}",
    )


def numbers(found: Sequence[Number]) -> Markup | None:
    """The large numbers, each with its interval, its ideal and the two directions."""
    if not found:
        return None
    return tag("div", *map(_number, found), class_="numbers")


def _number(number: Number) -> Markup:
    big, unit, ends = number_texts(number)
    small = f"{unit} ({ends})".strip() if ends else unit
    scale = 100.0 if number.unit in ("points", "percent") else 1.0
    held = number.value
    drawn = Value(*(None if end is None else scale * end for end in (held.value, held.low, held.high)))  # type: ignore[arg-type]
    log = number.unit == "ratio" and held.value > 0
    picture = gauge(drawn, scale * number.ideal, below=number.below, above=number.above, log=log)
    value = tag("p", f"{big} ", tag("small", small), class_="big")
    return tag("div", tag("h3", number.name), value, picture, tag("p", rich(number.text)))


def contents_list(blocks: Iterable[Block]) -> Markup:
    """Links to the sections."""
    return tag("nav", *(tag("a", b.name, href=f"#{b.anchor}") for b in blocks), class_="toc", aria_label="Sections")


def findings(found: Sequence[Finding]) -> Block | None:
    """Every finding opens its explanation, in place or by its address."""
    if not found:
        return None
    seen: Counter[str] = Counter()
    lines = []
    for finding in found:
        seen[finding.code] += 1
        again = f"-{seen[finding.code]}" if seen[finding.code] > 1 else ""
        lines.append(tag("li", _finding(finding, f"{finding.code.lower()}{again}")))
    lead = "Open a line for what it means and what to do."
    return Block("findings", "Findings", "Findings", lead, tag("ul", *lines, class_="findings"))


def _finding(finding: Finding, anchor: str) -> Markup:
    line = tag("span", tag("span", f"{finding.severity}: ", class_="vh"), finding.text)
    summary = tag("summary", icon(finding.severity), line, tag("span", finding.code, class_="c"))
    there = f"{finding.code} in the documentation"
    link = tag("a", there, href=finding.link) if finding.link.startswith("https://") else f"{there}: {finding.link}"
    paragraphs = [tag("p", rich(part)) for part in finding.explanation.split("\n\n") if part]
    return tag("details", summary, tag("div", *paragraphs, tag("p", link), class_="x"), id=anchor)
