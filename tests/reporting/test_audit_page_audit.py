"""The audit as a section of the report."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.inference import feature_audit
from calibrant.reporting.audit_page import audit_page, audited, sentence
from calibrant.reporting.contents import Audited
from calibrant.results.estimate import Significance
from tests.reporting.audits import found


def test_the_sentence_names_the_least_error_and_where_it_is():
    audit = found()
    low = audit.error.l1.interval.low
    assert sentence(audit).startswith(
        f"Given the features, predictions are off by at least {100 * low:.1f} points on average, most of all where "
    )
    assert f"observed {100 * audit.segments[0].observed:.1f} %." in sentence(audit)
    assert sentence(found(0.0)) == "No miscalibration was detected, given these features."


def test_the_section_has_the_numbers_of_the_audit():
    audit, section = found(), audited(found())
    assert section.significant
    assert section.p_value == audit.test.p_value
    assert [row.name for row in section.segments] == [one.text for one in audit.segments]
    assert [row.observed.value for row in section.segments] == [one.observed for one in audit.segments]
    name, worth = section.features[0]
    assert name == audit.features[0].feature
    assert worth.value == pytest.approx(float(audit.features[0].loss) / float(audit.error.log_loss.before))


@pytest.mark.no_cover
def test_the_twelve_most_important_features_are_shown():
    rng = np.random.default_rng(1)
    p, X = rng.uniform(0.2, 0.8, 6000), rng.integers(0, 2, (6000, 14))
    y = rng.random(6000) < 1 / (1 + np.exp(-np.log(p / (1 - p)) - (X - 0.5).sum(axis=1)))
    audit = cal.audit(cal.Binary(y, p), X)
    assert len(audit.features) == 14
    assert len(audited(audit).features) == 12


def test_a_report_has_the_section_or_says_why_not():
    rng = np.random.default_rng(2)
    p, place = rng.uniform(0.2, 0.4, 2000), rng.choice(["a", "b"], 2000)
    data = cal.Binary(rng.random(2000) < p + 0.3 * (place == "a"), p)
    report = cal.report(data, audit={"place": place})
    (section,) = (one for one in report.contents.sections if isinstance(one, Audited))
    assert section.segments[0].name == "place = a"
    assert section.sentence in str(report)
    assert "Where, for whom" in report.to_html()
    assert report.to_dict()["sections"]
    table = cal.BinTable.of(data, cal.table.Distinct())
    left = cal.report(table, audit={"place": place}).contents.omitted
    assert any(one.section == "Where, for whom" and "no rows to audit" in one.reason for one in left)


@pytest.mark.parametrize("significant", [True, False])
def test_the_verdict_tells_what_the_audit_found(significant, monkeypatch):
    rng = np.random.default_rng(3)
    p, place = rng.uniform(0.2, 0.8, 4000), rng.choice(["a", "b"], 4000)
    y = rng.random(4000) < p + 0.15 * np.where(place == "a", 1, -1)  # errors that cancel
    before = cal.report(cal.Binary(y, p)).verdict
    assert before.state == "not significant"
    if not significant:  # a confirmed segment beside a test that does not reject
        monkeypatch.setattr(feature_audit.Audit, "test", Significance(0.0, 0.2, method="three looks", n=4000))
    found = cal.report(cal.Binary(y, p), audit={"place": place})
    (section,) = (one for one in found.contents.sections if isinstance(one, Audited))
    assert section.significant is significant
    assert section.segments
    assert section.sentence in found.verdict.second
    assert ("detects no miscalibration" in section.sentence) is not significant
    assert found.verdict.severity == "caution"
    assert ("audit(...).repair()" in found.verdict.what_to_do) is significant
    assert "Nothing needs to be done" not in found.verdict.what_to_do
    page = audit_page(cal.audit(cal.Binary(y, p), {"place": place}))
    assert ("Nothing found over all features, but segments that are off" in page) is not significant
    assert ("Look at them again on new rows" in page) is not significant
