"""The report as one self-contained HTML page, which loads and sends nothing, and as a fragment for notebooks."""

from __future__ import annotations

import base64
import hashlib
import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from calibrant._version import __version__
from calibrant.reporting.contents import Contents, Number, Severity, Verdict
from calibrant.reporting.drawing.markup import Child, Markup, joined, tag
from calibrant.reporting.drawing.table_cells import gauge
from calibrant.reporting.layout.blocks import blocks, omitted_block
from calibrant.reporting.layout.elements import Block, data_table, fold, icon, rich
from calibrant.reporting.model import Report
from calibrant.reporting.names import asset, plural
from calibrant.reporting.rounding import count, mapped, score
from calibrant.reporting.text import STATES, answers, estimates_table, number_texts, tests_table

if TYPE_CHECKING:
    from calibrant.reporting.model import Finding


def sheet(title: str, *parts: Child) -> str:
    """The whole HTML text; the policy names style and script by their hashes, so that nothing else can run."""
    style, script = style_text(), asset("page.js")
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


def style_text() -> str:
    """The style of the page."""
    return asset("figures.css") + asset("page.css")


def fragment_style() -> Markup:
    """The style of figures, tables and verdict for a notebook; it reaches nothing outside."""
    return tag("style", Markup(asset("figures.css")))


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def details_block(report: Report) -> Block:
    """The folds at the end of the page."""
    folds: list[Child] = []
    estimates, tests = estimates_table(report), tests_table(report)
    if estimates.rows:
        note = (
            "One interval is given for the true error: that of the headline. Other estimates of it aim at the same "
            "quantity. Mean scores, such as the Brier score and log loss, are not calibration errors."
        )
        table = data_table(estimates, "All estimates", ("", "n nw", "n nw", "why"))
        folds.append(fold("All estimates", table, tag("p", note)))
    if tests.rows:
        folds.append(fold("All tests", data_table(tests, "All tests", ("", "n nw", "why"))))
    if report.contents.notes:
        folds.append(fold("Method notes", *(tag("p", rich(note)) for note in report.contents.notes)))
    made = f"Calibrant {__version__}, Python {platform.python_version()}, {platform.system()}."
    folds.append(fold("How this report was made", tag("p", made)))
    return Block("details", "Details", "Details", "", tag("div", *folds, class_="folds"))


_KINDS = {
    "binary": "binary probabilities",
    "top label": "confidence in answers",
    "classes": "class probabilities",
    "regression": "forecasts with their uncertainty",
    "unlabeled": "positive and unlabeled rows",
    "judged": "judged answers with few gold labels",
}


def kicker(contents: Contents) -> str:
    """What kind of predictions the report is about."""
    if contents.kind == "classes" and contents.facts.classes is not None:
        return f"Calibration report · {contents.facts.classes} classes"
    return f"Calibration report · {_KINDS[contents.kind]}"


def whole_page(title: str, kind: str, heading: str, facts: Iterable[tuple[str, str]], *main: Child) -> str:
    """The whole HTML text: kind, heading, the button for light and dark, the line of facts, and what answers."""
    words = tag("div", tag("p", kind, class_="kicker"), tag("h1", heading))
    top = tag("div", words, tag("button", "Dark", type="button", class_="theme"), class_="top")
    pairs = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts]
    return sheet(title, tag("header", top, tag("dl", *pairs, class_="facts")), tag("main", *main, id="main"), footer())


def fact_list(contents: Contents) -> list[tuple[str, str]]:
    """Names and values of the facts that are known."""
    known = contents.facts
    found = [(plural(known.row).capitalize(), count(known.rows))]
    numbers = {"Effective number": known.effective_rows, "Groups of dependent rows": known.clusters}
    numbers |= {"Classes": known.classes, "Gold labels": known.labels}
    found += [(name, count(number)) for name, number in numbers.items() if number is not None]
    confidence = contents.kind in ("top label", "classes", "judged")
    unlabeled = contents.kind == "unlabeled"
    if known.events is not None and not confidence:
        name = "Labelled positives" if unlabeled else plural(known.event, kind="event").capitalize()
        share = "" if known.base_rate is None or unlabeled else f" ({score(known.base_rate)})"
        found.append((name, f"{count(known.events)}{share}"))
    listed = contents.kind != "judged" and (confidence or unlabeled or known.events is None)
    if known.base_rate is not None and listed:  # an accuracy that is an estimate stands beside its interval
        name = "Accuracy" if confidence else "Assumed share of positives" if unlabeled else "Base rate"
        found.append((name, score(known.base_rate)))
    if known.mean_prediction is not None:
        found.append(("Mean confidence" if confidence else "Mean prediction", score(known.mean_prediction)))
    texts = {"Period": known.period, "Model": known.model, "Data": known.source}
    return found + [(name, text) for name, text in texts.items() if text]


def verdict_block(found: Verdict) -> Markup:
    """The answer with how sure, what it means and what to do."""
    return answer_block(found.severity, STATES[found.state], found.sentence, answers(found), second=found.second)


def answer_block(
    severity: Severity,
    state: str,
    sentence: str,
    three: Sequence[tuple[str, str]],
    *,
    name: str = "Verdict",
    second: str = "",
) -> Markup:
    """An answer by its shape and state, in a sentence or two, and its three short answers."""
    short = [tag("div", tag("h3", what), tag("p", text)) for what, text in three]
    return tag(
        "div",
        tag("h2", name, class_="vh"),
        tag("p", icon(severity), state, class_="state"),
        tag("p", sentence, class_="say"),
        tag("p", second, class_="more") if second else None,
        tag("div", *short, class_="three") if short else None,
        class_=f"verdict {severity}",
    )  # fmt: skip


def numbers_block(found: Sequence[Number]) -> Markup | None:
    """The large numbers, each with its interval, its ideal and the two directions."""
    return tag("div", *map(_number, found), class_="numbers") if found else None


def _number(number: Number) -> Markup:
    big, unit, ends = number_texts(number)
    confidence = "" if number.level == 0.95 else f", {100 * number.level:.6g} % interval"
    small = f"{unit} ({ends}{confidence})".strip() if ends else unit
    scale = 100.0 if number.unit in ("points", "percent") else 1.0
    drawn = mapped(number.value, lambda end: scale * end)
    log = number.unit == "ratio" and number.value.value > 0
    picture = gauge(drawn, scale * number.ideal, below=number.below, above=number.above, log=log)
    value = tag("p", f"{big} ", tag("small", small), class_="big")
    return tag("div", tag("h3", number.name), value, picture, tag("p", rich(number.text)))


def findings_block(found: Sequence[Finding]) -> Block | None:
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


def page(report: Report) -> str:
    """The whole HTML text: it loads nothing, sends nothing, and works with scripts off."""
    contents = report.contents
    made = [findings_block(report.findings), *blocks(contents), omitted_block(contents), details_block(report)]
    shown = [block for block in made if block is not None]
    links = [tag("a", block.name, href=f"#{block.anchor}") for block in shown]
    listed = tag("nav", *links, class_="toc", aria_label="Sections")
    first = (verdict_block(contents.verdict), numbers_block(contents.numbers), listed)
    title, main = f"{report.title}: calibration report", (*first, *(block.html() for block in shown))
    return whole_page(title, kicker(contents), report.title, fact_list(contents), *main)


def fragment(report: Report) -> str:
    """Verdict, numbers, findings and main figures; no script, and a style that reaches nothing outside."""
    contents = report.contents
    found = [tag("li", tag("b", finding.code), f" {finding.text}") for finding in report.findings]
    shown = [(block.title, block.in_notebook) for block in blocks(contents) if block.in_notebook is not None]
    parts: list[Child] = [
        fragment_style(),
        tag("p", report.title, class_="title"),
        verdict_block(contents.verdict),
        numbers_block(contents.numbers),
        tag("ul", *found, class_="found") if found else None,
        *(joined([tag("h3", title, class_="seen"), body]) for title, body in shown),
    ]
    return str(tag("div", *parts, class_="calibrant notebook"))
