"""The report as plain results, saved by the ending of its path."""

import json

import pytest

from calibrant.reporting.contents import Reliability
from calibrant.reporting.model import finite


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
    assert found["findings"][0]["link"].startswith("docs/findings.md#cal")
    assert found["measures"][0]["headline"]
    assert found["facts"]["rows"] == 3000
    assert finite({1: float("nan"), "a": [float("inf"), 2]}) == {"1": None, "a": [None, 2]}


def test_every_finding_explains_itself(over):
    for finding in over.findings:
        assert finding.explanation
        assert finding.link.endswith(finding.code.lower())
