"""The block of an audit."""

import hashlib

from calibrant.reporting.contents import Audited, SegmentRow
from calibrant.reporting.layout.blocks import audit_block
from calibrant.results.estimate import Value

SECTION = Audited(
    "Given the features, predictions are off.",
    1e-9,
    True,
    (
        SegmentRow("age < 30 & <i>", 0.1, 500, 0.2, Value(0.4, 0.35, 0.45), 1e-6, "too low"),
        SegmentRow("country = BR", 0.3, 1500, 0.25, Value(0.2, 0.18, 0.22), 0.01, "too high"),
    ),
    (("age", Value(0.02, 0.015, 0.025)), ("a name of more than twenty-eight letters", Value(0.01, 0.005, 0.015))),
)


def test_segments_and_features_are_shown_and_escaped():
    where, features = audit_block(SECTION)
    html = str(where.html())
    assert where.title == "2 segments are confirmed to be off"
    assert "age &lt; 30 &amp; &lt;i&gt;" in html
    assert "<i>" not in html
    assert "too low" in html
    assert "40.0" in html
    assert "35.0 to 45.0" in html
    assert features.title == "Features that matter most: age and a name of more than twenty-eight letters"
    assert "a name of more than twenty-…" in str(features.html())


def test_no_segment_is_said():
    (only,) = audit_block(Audited("Nothing.", 0.5, False, (), ()))
    assert only.title == "No segment is confirmed to be off"
    assert "Nothing." in str(only.html())


def test_the_blocks_are_drawn_as_before():
    """Look at the page before freezing another drawing."""
    drawn = "".join(str(block.html()) for block in audit_block(SECTION))
    assert hashlib.sha256(drawn.encode()).hexdigest()[:16] == "7bb903b29409f4f8"
