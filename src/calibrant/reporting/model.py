"""The report as plain results, and what each of its findings means."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from calibrant._atomic_write import replacing
from calibrant.data.validation import fail
from calibrant.reporting.contents import Contents, Groups, OverTime, Recalibration, Section, Severity, Verdict
from calibrant.reporting.names import asset
from calibrant.results.estimate import Estimate, Significance


@cache
def explanations() -> dict[str, str]:
    """By code: what a finding means, why it happens and what to do, in Markdown of `code` and **bold** only."""
    page = re.findall(r"## (CAL\d+)\n\n\*\*.+?\.\*\* (.+)\n\n\*\*Remedy\.\*\* (.+)\n", asset("findings.md"))
    return {code: f"{meaning}\n\n**What to do.** {remedy}" for code, meaning, remedy in page}


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
        return explanations()[self.code]


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
