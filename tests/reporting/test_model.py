"""The report as plain results, saved by the ending of its path, and the explanations of its findings."""

import importlib.metadata
import json
from email.message import Message
from pathlib import Path

import pytest

from calibrant.reporting.contents import Reliability
from calibrant.reporting.model import Finding, documentation, explanations, finite
from calibrant.reporting.names import asset


def test_saving_is_by_ending_and_atomic(over, tmp_path):
    for name in ("report.html", "report.json", "report.md"):
        assert over.save(tmp_path / name).stat().st_size > 500
    with pytest.raises(ValueError, match=r"\.html, \.json or \.md"):
        over.save(tmp_path / "report.pdf")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json", "report.md"]


def test_the_parts_are_those_of_the_contents(over):
    assert over.n == 3000
    assert over.verdict is over.contents.verdict
    assert over.headline is over.measures[0].estimate
    assert over.recalibration in over.contents.sections
    assert over.groups[0] in over.contents.sections
    assert over.over_time is None
    assert len(over.sections_of(Reliability)) == 1
    assert repr(over) == f"<Report 'Over <b>confident</b>': {over.verdict}>"


def test_json_holds_everything_in_plain_types(over):
    found = json.loads(over.to_json())
    assert found["verdict"]["rule"] == over.verdict.rule
    assert [section["section"] for section in found["sections"]] == [type(s).__name__ for s in over.contents.sections]
    assert found["findings"][0]["link"] == over.findings[0].link
    assert found["measures"][0]["headline"]
    assert found["facts"]["rows"] == 3000
    assert finite({1: float("nan"), "a": [float("inf"), 2]}) == {"1": None, "a": [None, 2]}


@pytest.mark.parametrize(
    ("published", "link"),
    [
        (
            ["Source, https://code.example", "Documentation, https://docs.example/"],
            "https://docs.example/findings.html",
        ),
        (["Source, https://code.example"], "docs/findings.md"),
        (None, "docs/findings.md"),
    ],
)
def test_findings_link_to_the_address_of_the_project_if_it_has_one(monkeypatch, published, link):
    """One place says where the documentation is: the metadata of the package."""
    found = Message()
    for entry in published or ():
        found["Project-URL"] = entry
    monkeypatch.setattr(importlib.metadata, "metadata", lambda name: found)
    documentation.cache_clear()
    try:
        assert Finding("CAL403", "note", "Few.").link == f"{link}#cal403"
    finally:
        documentation.cache_clear()


def test_every_finding_explains_itself(over):
    for finding in over.findings:
        assert finding.explanation
        assert finding.link.endswith(finding.code.lower())


DOCS = Path(__file__).parents[2] / "docs" / "findings.md"


def test_the_documentation_says_the_same():
    assert DOCS.read_text(encoding="utf8") == asset("findings.md"), "copy the file of the package to docs"


def test_every_section_of_the_page_is_an_explanation():
    assert len(explanations()) == asset("findings.md").count("\n## CAL")


@pytest.mark.parametrize("code", explanations())
def test_every_explanation_is_whole(code):
    meaning, remedy = explanations()[code].split("\n\n**What to do.** ")
    assert meaning.endswith(".")
    assert remedy.endswith(".")
