"""The report as plain results: it holds what was measured, prints it in several forms, and computes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from calibrant._atomic_write import replacing
from calibrant.results.estimate import Estimate, Significance

Severity = Literal["problem", "caution", "note"]

#: Where the documentation explains a finding; the number is the anchor.
DOCS = "docs/findings.md"


@dataclass(frozen=True)
class Finding:
    """Something a reader should know, numbered so that the documentation can explain it.

    Examples
    --------
    >>> finding = Finding("CAL402", "caution", "150 rows are few.")
    >>> finding.link
    'docs/findings.md#cal402'
    """

    code: str
    severity: Severity
    text: str

    @property
    def link(self) -> str:
        """The place in the documentation."""
        return f"{DOCS}#{self.code.lower()}"


@dataclass(frozen=True, eq=False)
class Measure:
    """One line of the table of estimators: the estimate, and the bias this estimator has at this size.

    Examples
    --------
    >>> import calibrant as cal
    >>> Measure(cal.ece([0, 1], [0.2, 0.8]), bias=0.1).estimate
    <ECE (L1) 0.2, n=2, EqualMass(n_bins=15)>
    """

    estimate: Estimate
    bias: float | None = None
    headline: bool = False


@dataclass(frozen=True)
class Repair:
    """What a recalibrator would leave, measured on rows it was not fitted on.

    Examples
    --------
    >>> Repair("Platt", error=0.01, loss=0.45, loss_before=0.5).gain
    0.04999999999999999
    """

    name: str
    error: float
    loss: float
    loss_before: float

    @property
    def gain(self) -> float:
        """How much of the loss it saves."""
        return self.loss_before - self.loss


@dataclass(frozen=True, eq=False)
class Group:
    """The headline error in one group, and the p-value of the test that the model is calibrated there.

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p = [0, 1, 1, 0], [0.3, 0.6, 0.9, 0.2]
    >>> Group("at", 4, cal.ece(y, p), cal.calibration_test(cal.Binary(y, p)).p_value).name
    'at'
    """

    name: str
    n: int
    estimate: Estimate
    p_value: float


@dataclass(frozen=True, eq=False)
class Report:
    """Ordered results and findings.

    Attributes
    ----------
    title, task : str
    n : int
        Rows.
    verdict : str
        One plain sentence.
    measures : tuple of Measure
        The headline first.
    tests : tuple of Significance
    repairs : tuple of Repair
        Best first.
    groups : tuple of Group
        Worst first.
    findings : tuple of Finding
    charts : mapping
        The data of the page's figures, plain types only.
    interval_label : str
        What the intervals of the measures are: confidence intervals, or the range of a perfect forecaster.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.report([0, 1, 0, 1, 1, 0, 1, 0], [0.2, 0.7, 0.4, 0.9, 0.6, 0.1, 0.8, 0.3], title="Demo")
    >>> found.n, found.headline.name
    (8, 'Averaged error (L1)')
    >>> found.to_markdown().splitlines()[0]
    '# Demo'
    """

    title: str
    task: str
    n: int
    verdict: str
    measures: tuple[Measure, ...]
    tests: tuple[Significance, ...] = ()
    repairs: tuple[Repair, ...] = ()
    groups: tuple[Group, ...] = ()
    findings: tuple[Finding, ...] = ()
    charts: Mapping[str, Any] = field(default_factory=dict, repr=False)
    interval_label: str = "95 % interval"

    @property
    def headline(self) -> Estimate:
        """The estimate the verdict speaks of."""
        return next(measure.estimate for measure in self.measures if measure.headline)

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON; without the figures' data."""
        return {
            "title": self.title,
            "task": self.task,
            "n": self.n,
            "verdict": self.verdict,
            "measures": [{**m.estimate.to_dict(), "bias": m.bias, "headline": m.headline} for m in self.measures],
            "tests": [test.to_dict() for test in self.tests],
            "repairs": [asdict(repair) for repair in self.repairs],
            "groups": [{"name": g.name, "n": g.n, "p_value": g.p_value, **_value(g.estimate)} for g in self.groups],
            "findings": [{**asdict(finding), "link": finding.link} for finding in self.findings],
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """`to_dict` as JSON; numbers that are not finite become null."""
        return json.dumps(finite(self.to_dict()), indent=indent, allow_nan=False)

    def to_markdown(self) -> str:
        """Headings and tables for a pull request or a wiki."""
        from calibrant.reporting.text import markdown

        return markdown(self)

    def to_html(self) -> str:
        """One self-contained page."""
        from calibrant.reporting.page import page

        return page(self)

    def save(self, path: str | Path) -> Path:
        """Write the report; the suffix decides the format: .html, .json or .md. It is replaced whole or not at all."""
        path = Path(path)
        makers = {".html": self.to_html, ".json": self.to_json, ".md": self.to_markdown}
        if path.suffix not in makers:
            message = f"A report is saved as .html, .json or .md, not as {path.suffix or path.name!r}."
            raise ValueError(message)
        text = makers[path.suffix]()
        with replacing(path) as place:
            place.write_text(text, encoding="utf8")
        return path

    def __str__(self) -> str:
        from calibrant.reporting.text import plain

        return plain(self)

    def __repr__(self) -> str:
        return f"<Report {self.title!r}: {self.verdict}>"

    def _repr_html_(self) -> str:
        from calibrant.reporting.text import fragment

        return fragment(self)


def _value(estimate: Estimate) -> dict[str, Any]:
    whole = estimate.to_dict()
    return {"value": whole["value"], "interval": whole["interval"]}


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
