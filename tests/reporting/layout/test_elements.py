"""Pieces of the page."""

from dataclasses import replace

import pytest

from calibrant.reporting.drawing.figure import Figure, Table
from calibrant.reporting.drawing.markup import Markup
from calibrant.reporting.layout import elements
from tests.reporting.hand_made import BINARY_VERDICT, HOSTILE, binary


def test_a_block_is_a_section_named_by_its_heading():
    html = elements.Block("time", "Over time", "Title <", "Lead", Markup("<i></i>")).html()
    assert html.startswith('<section id="time" aria-labelledby="time-h"><h2 id="time-h">Title &lt;</h2>')


def test_rich_text_knows_code_and_bold_only():
    assert elements.rich("a `b < c` **d** <e> ** `") == "a <code>b &lt; c</code> <b>d</b> &lt;e&gt; ** `"
    assert "<img" not in elements.rich(f"`{HOSTILE}` **{HOSTILE}**")


def test_severities_differ_in_shape():
    shapes = {elements.icon(severity).split(">", 1)[1] for severity in ("problem", "caution", "note")}
    assert len(shapes) == 3


def test_a_figure_has_both_widths_and_a_fold_with_text_and_table():
    table = Table(("a", "b"), (("<", "1"),))
    figure = Figure(Markup("<svg>w</svg>"), Markup("<svg>n</svg>"), "Title", "Words", table)
    assert elements.drawn(figure) == "<svg>w</svg><svg>n</svg>"
    fold = elements.as_text(figure)
    assert "Figure as text and table" in fold
    assert "<td>&lt;</td>" in fold
    assert 'tabindex="0"' in fold
    bare = Figure(Markup(""), Markup(""), "Title", "Words")
    assert "<table" not in elements.as_text(bare)


def test_code_is_copied_as_it_is():
    assert '<pre tabindex="0">a % b &lt; c</pre>' in elements.code_box("Python", "a % b < c")


def test_other_pieces_escape_their_text():
    made = [
        elements.callout(HOSTILE, HOSTILE),
        elements.pill(HOSTILE),
        elements.quiet(HOSTILE),
        elements.fold(HOSTILE, HOSTILE),
        elements.text_fold(HOSTILE, HOSTILE),
        elements.code_box(HOSTILE, HOSTILE),
        elements.plain_table([HOSTILE], [[HOSTILE]], [""]),
    ]
    assert not any("<img" in piece for piece in made)


@pytest.mark.parametrize(
    ("state", "rule", "found"),
    [
        ("not calibrated", "B8", True),
        ("small", "B7", True),
        ("not significant", "B5", False),
        ("not calibrated", "M2", False),
        ("too few", "B2", None),
        ("cannot be judged", "B4", None),
    ],
)
def test_titles_may_claim_what_the_test_of_the_figure_says(state, rule, found):
    assert elements.rejected(binary(verdict=replace(BINARY_VERDICT, state=state, rule=rule))) is found


def test_the_interval_stands_after_its_value():
    assert elements.with_interval(("1", "0 to 2"), hide=True) == '1<span class="q hide"> (0 to 2)</span>'
    assert elements.with_interval(("≤ 1", "")) == "≤ 1"
