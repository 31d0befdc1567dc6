"""The report as plain results, and what each of its findings means.

For every finding: what it means, why it happens, and what to do. The page and docs/findings.md say the same.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from calibrant._atomic_write import replacing
from calibrant.data.validation import fail
from calibrant.reporting.contents import Contents, Groups, OverTime, Recalibration, Section, Severity, Verdict
from calibrant.results.estimate import Estimate, Significance


class Explanation(NamedTuple):
    """A title, what it means and why it happens, and what to do; all in Markdown of `code` and **bold** only."""

    title: str
    meaning: str
    what_to_do: str

    @property
    def text(self) -> str:
        """Paragraphs."""
        return f"{self.meaning}\n\n**What to do.** {self.what_to_do}"


#: By code.
EXPLANATIONS: dict[str, Explanation] = {
    "CAL101": Explanation(
        "Certain and wrong",
        "A probability of exactly 0 or 1 says that the other outcome is impossible; here it happened. Log loss is then "
        "infinite and says nothing about the other rows. Usual causes: probabilities rounded on storage, "
        "half-precision softmax, tree leaves with one class.",
        "Store more digits, or recalibrate with any map of Calibrant: none predicts certainty by default.",
    ),
    "CAL102": Explanation(
        "Many certain predictions",
        "No finite sample supports a probability of exactly 0 or 1, even if all were right so far.",
        "As for CAL101.",
    ),
    "CAL103": Explanation(
        "Constant prediction",
        "With one score only the total can be compared.",
        "Check that the right column was passed.",
    ),
    "CAL104": Explanation(
        "Decisions",
        "Calibration is about probabilities; 0 and 1 are decisions.",
        "Pass `predict_proba(...)[:, 1]`, not `predict(...)`.",
    ),
    "CAL201": Explanation(
        "Not calibrated",
        "The test compares predicted and observed frequencies at every scale, against outcomes simulated from the "
        "predictions. A small p-value says that the deviations are not chance; the headline numbers say how large they "
        "are. With many rows a harmless error can be significant. Tests of groups and times are adjusted for each "
        "other.",
        "Read the size first, then the diagram.",
    ),
    "CAL202": Explanation(
        "No significant miscalibration",
        "The deviations are within what chance produces. This is not proof of calibration: the upper end of the "
        "interval says how large the error may still be.",
        "If that is too large for your use, collect more rows.",
    ),
    "CAL203": Explanation(
        "Significant but small",
        "Enough rows make any error significant. This one is below 5 % of the base rate (or within your tolerance).",
        "Usually nothing.",
    ),
    "CAL204": Explanation(
        "Too extreme / too moderate",
        "The calibration slope is the coefficient of the predicted log odds in a logistic regression of the outcome. "
        "Below 1, scores overstate differences in risk, as after overfitting; above 1 they understate them, as after "
        "strong regularisation or averaging.",
        "Platt scaling or beta calibration; a shift of the base rate alone does not repair it.",
    ),
    "CAL205": Explanation(
        "Over- or under-confident",
        "The confidence in predictions or answers is compared with how often they are right.",
        "Temperature scaling repairs this part; see the table of classes for the rest.",
    ),
    "CAL206": Explanation(
        "Test and interval disagree",
        "They answer different questions: the test looks everywhere and may find a small, sharp deviation; the "
        "interval is about the mean size.",
        "Trust both: there is an error, but its mean size may be tiny.",
    ),
    "CAL207": Explanation(
        "Not tested",
        "A test that could not be computed was not passed. Usual causes: dependent rows, several outputs per row, too "
        "few clusters, or numbers that are too large or too small.",
        "Judge by the intervals, and remove the cause that the finding names.",
    ),
    "CAL208": Explanation(
        "Scores run backwards",
        "The whole interval of the calibration slope lies below 0: the higher the score, the rarer the event. Usual "
        "causes: the probability of the other class, a score for which low means likely, another model's column, or "
        "classes in another order.",
        "Check the column and the positive class, and repeat the report.",
    ),
    "CAL209": Explanation(
        "Scores without information",
        "The calibration slope may be 0: higher scores do not go with more events. Usual causes: outcomes joined to "
        "the wrong rows, a shuffled column, or a model that learned nothing.",
        "Check how outcomes were joined to predictions. A recalibration map can set the level right, but cannot add "
        "information.",
    ),
    "CAL211": Explanation(
        "Whole vector",
        "Outcomes drawn from the predicted vectors give the distribution of each statistic. The statistics look at "
        "sharpness, at classes in ranges of their probability, and at confused pairs of classes, so they see what the "
        "top label hides.",
        "Read the table of classes; recalibrate the whole vector.",
    ),
    "CAL212": Explanation(
        "Classes",
        "Each class is tested one against the rest, with p-values adjusted for the number of classes (Westfall and "
        "Young).",
        "Vector scaling if totals differ by class; temperature if only the sharpness is wrong.",
    ),
    "CAL301": Explanation(
        "Groups",
        "Every group is tested against outcomes simulated from its predictions; p-values are adjusted for the number "
        "of groups. A total can look right while groups err in opposite directions.",
        "If all groups share the direction of the whole, one map serves. If not, fit a map per group "
        "(`recalibrate.PerGroup` does so for forecasts), or give the model the group as a feature.",
    ),
    "CAL302": Explanation(
        "Small groups",
        "Estimates from a handful of events look extreme mostly by chance.",
        "Merge groups, or use `by_group(..., shrink=True)`.",
    ),
    "CAL303": Explanation(
        "Change over time",
        "Each period's total is tested, adjusted for the number of periods; the change point is the split with the "
        "largest difference, adjusted for the search.",
        "Look for a change in data, population or base rate at that time; recalibrate on rows after it.",
    ),
    "CAL304": Explanation(
        "Folded groups",
        "The figure shows flagged groups and the largest others; the table holds all.",
        "Open the table for the groups that the figure leaves out.",
    ),
    "CAL401": Explanation(
        "Plain ECE",
        "The binned ECE adds up the absolute noise of every bin, so it grows with the number of bins even for a "
        "perfectly calibrated model (grey area in the figure).",
        "Report the calibration error with its interval, or the debiased ECE; never compare plain ECEs of different "
        "sizes.",
    ),
    "CAL402": Explanation(
        "Few rows",
        "The test would find this error in four of five samples of this size if all probabilities were shifted by it; "
        "errors of other shapes must be larger.",
        "Collect more rows, or judge by the interval.",
    ),
    "CAL403": Explanation(
        "Few distinct scores",
        "Equal scores are never split between bins, so there are as many bins as scores.",
        "Nothing, if the scores are meant to be few; otherwise look for rounding on storage.",
    ),
    "CAL404": Explanation(
        "Table",
        "A table of sums per score is enough for every number of the report except intervals for dependent rows.",
        "For clusters, pass rows with `group=`.",
    ),
    "CAL501": Explanation(
        "Recalibration helps",
        "Each map is fitted on four fifths of the rows and judged on the rest; the interval of the mean paired "
        "difference excludes 0. The remaining error is that of the held-out rows.",
        "Use the command shown; report on other rows than those of the fit.",
    ),
    "CAL502": Explanation(
        "Recalibration does not help",
        "Every map that was tried makes predictions worse on rows it was not fitted on: they are calibrated well "
        "enough, or the error needs more rows to learn.",
        "Nothing now; test again with more rows.",
    ),
    "CAL503": Explanation(
        "Recalibration may not help",
        "The predictions may be calibrated well enough for their number, or the error has a shape that needs more rows "
        "to learn.",
        "Nothing now; test again with more rows.",
    ),
    "CAL601": Explanation(
        "Spread",
        "Standardised errors (y − mean) / std should have a mean square of 1. The interval allows for heavy tails, by "
        "the kurtosis of the standardised errors and by the largest of them.",
        "Rescale the spread; see which map is best.",
    ),
    "CAL602": Explanation(
        "Constant spread",
        "However well it is scaled, a constant spread cannot say which rows are uncertain.",
        "A model of the variance, an ensemble, or conformal intervals.",
    ),
    "CAL603": Explanation(
        "One row",
        "A tiny predicted spread met an ordinary error.",
        "Put a floor under the spread, or check the row.",
    ),
    "CAL604": Explanation(
        "Coverage hides it",
        "Too wide for some rows and too narrow for others averages to the right coverage.",
        "Judge by the figure of spread against error.",
    ),
    "CAL605": Explanation(
        "One factor",
        "Scaling all spreads by one number repairs the average and can harm where the spread was right.",
        "Prefer a map that depends on the spread.",
    ),
    "CAL701": Explanation(
        "Shares above 100 %",
        "Either the assumed share of positives is too large, or labelled positives are not a random sample of all "
        "positives.",
        "Lower the share until the finding disappears; check how rows were chosen for labelling.",
    ),
    "CAL702": Explanation(
        "Share too large",
        "Scores of unlabeled rows leave no room for that many positives.",
        "Estimate it, for example with `calibrant.pu`; see the figure over shares.",
    ),
    "CAL703": Explanation(
        "Depends on the share",
        "Without labelled negatives, the level of the observed frequencies is set by the assumed share; an error in it "
        "moves every frequency in proportion.",
        "Label a random sample of 200 unlabeled rows: it settles the matter.",
    ),
    "CAL704": Explanation(
        "Random sample of positives",
        "If the chance of being labelled rises with the score, frequencies at high scores are overstated.",
        "Compare labelled positives with a random sample of confirmed ones.",
    ),
    "CAL801": Explanation(
        "How answers were chosen for labelling",
        "Gold labels stand for the rows without one. A judge that is wrong, even for one model only, is corrected by "
        "them; labels that were chosen by interest, by ease or by the judge cannot be corrected.",
        "Draw rows at random, or with `next_labels`, and pass the `weight` that it returns.",
    ),
    "CAL802": Explanation(
        "Groups without a gold label",
        "The judge may be biased in such a group, and nothing would show it. A number would be the judge's alone.",
        "Label some rows of each group: `next_labels(k, by=...)` gives each the same number.",
    ),
}


Kind = TypeVar("Kind", bound=Section)


@cache
def documentation() -> str:
    """The address of the documentation, from the project's metadata; "" where none is published."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        found = metadata("calibrant").get_all("Project-URL") or ()
    except PackageNotFoundError:
        return ""
    named = dict(entry.split(", ", 1) for entry in found)
    return next((address.rstrip("/") for name, address in named.items() if name.lower() == "documentation"), "")


@dataclass(frozen=True)
class Finding:
    r"""Something a reader should know, numbered so that the documentation can explain it.

    Examples
    --------
    >>> finding = Finding("CAL403", "note", "Only 10 distinct scores: every score is its own bin.")
    >>> finding.link.endswith("#cal403")
    True
    >>> finding.explanation.split("\n\n")[0]
    'Equal scores are never split between bins, so there are as many bins as scores.'
    """

    code: str
    severity: Severity
    text: str

    @property
    def link(self) -> str:
        """The place in the documentation; the file of the repository where no address is published."""
        site = documentation()
        return f"{site}/findings.html#{self.code.lower()}" if site else f"docs/findings.md#{self.code.lower()}"

    @property
    def explanation(self) -> str:
        """What it means, why it happens, and what to do; paragraphs, with `code` and **bold** words."""
        return EXPLANATIONS[self.code].text


@dataclass(frozen=True, eq=False)
class Measure:
    """One line of the table of estimates; the headline is the one that the verdict speaks of.

    Examples
    --------
    >>> import calibrant as cal
    >>> Measure(cal.ece([0, 1], [0.2, 0.8])).estimate
    <ECE (L1) 0.2, n=2, EqualMass(n_bins=15)>
    """

    estimate: Estimate
    headline: bool = False


@dataclass(frozen=True, eq=False)
class Report:
    """A verdict, the evidence for it, and everything that was measured.

    Attributes
    ----------
    title : str
    contents : Contents
        Facts, verdict, the three numbers, and the sections in reading order.
    measures : tuple of Measure
        Every estimate, the headline first.
    tests : tuple of Significance
        The test of the verdict first.
    findings : tuple of Finding
        Most serious first.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.report([0, 1, 0, 1, 1, 0, 1, 0], [0.2, 0.7, 0.4, 0.9, 0.6, 0.1, 0.8, 0.3], title="Demo")
    >>> found.n, found.headline.name
    (8, 'Calibration error (L1)')
    >>> print(found.verdict)
    Too few events to judge: 4 among 8 rows. An error of up to ... points cannot be ruled out.
    >>> found.verdict.state, found.verdict.severity
    ('too few', 'caution')
    >>> found.to_markdown().splitlines()[0]
    '# Demo'
    """

    title: str
    contents: Contents
    measures: tuple[Measure, ...] = ()
    tests: tuple[Significance, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def n(self) -> int:
        """Rows."""
        return self.contents.facts.rows

    @property
    def verdict(self) -> Verdict:
        """State, severity, direction and sentences; as text, the sentences alone."""
        return self.contents.verdict

    @property
    def headline(self) -> Estimate | None:
        """The estimate the verdict speaks of; None where nothing could be measured."""
        return next((measure.estimate for measure in self.measures if measure.headline), None)

    @property
    def recalibration(self) -> Recalibration | None:
        """The compared maps, if any could be fitted."""
        return next(iter(self.sections_of(Recalibration)), None)

    @property
    def over_time(self) -> OverTime | None:
        """Observed and expected events in order of time."""
        return next(iter(self.sections_of(OverTime)), None)

    @property
    def groups(self) -> tuple[Groups, ...]:
        """The groups of each column."""
        return tuple(self.sections_of(Groups))

    def sections_of(self, kind: type[Kind]) -> list[Kind]:
        """All sections of one kind, in reading order."""
        return [section for section in self.contents.sections if isinstance(section, kind)]

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        contents = asdict(self.contents)
        sections = [
            {"section": type(section).__name__, **made}
            for section, made in zip(self.contents.sections, contents["sections"], strict=True)
        ]
        return {
            "title": self.title,
            "n": self.n,
            **contents,
            "sections": sections,
            "measures": [{**m.estimate.to_dict(), "headline": m.headline} for m in self.measures],
            "tests": [test.to_dict() for test in self.tests],
            "findings": [{**asdict(finding), "link": finding.link} for finding in self.findings],
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON; numbers that are not finite become null."""
        return json.dumps(finite(self.to_dict()), indent=indent, allow_nan=False, ensure_ascii=False)

    def to_markdown(self) -> str:
        """Headings and tables for a pull request or a wiki."""
        from calibrant.reporting.text import markdown

        return markdown(self)

    def to_html(self) -> str:
        """One self-contained page."""
        from calibrant.reporting.layout.page import page

        return page(self)

    def save(self, path: str | Path) -> Path:
        """Write the report; the suffix decides the format: .html, .json or .md. It is replaced whole or not at all."""
        path = Path(path)
        makers = {".html": self.to_html, ".json": self.to_json, ".md": self.to_markdown}
        if path.suffix not in makers:
            fail(f"A report is saved as .html, .json or .md, not as {path.suffix or path.name!r}.", ValueError)
        text = makers[path.suffix]()
        with replacing(path) as place:
            # Only JSON can hold half a pair of surrogates, and this is how it is written there.
            place.write_text(text, encoding="utf8", errors="backslashreplace")
        return path

    def __str__(self) -> str:
        from calibrant.reporting.text import plain

        return plain(self)

    def __repr__(self) -> str:
        return f"<Report {self.title!r}: {self.verdict}>"

    def _repr_html_(self) -> str:
        from calibrant.reporting.layout.page import fragment

        return fragment(self)


def finite(value: Any) -> Any:
    """The same with numbers that JSON cannot hold as None."""
    if isinstance(value, dict):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(inner) for inner in value]
    if isinstance(value, float):
        return float(value) if value - value == 0 else None
    if hasattr(value, "tolist"):
        return finite(value.tolist())
    return value
