"""Pieces of the page: keys, tables, and flags marked by word, shape and colour."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from calibrant.reporting.contents import Threshold
from calibrant.reporting.drawing.canvas import Figure
from calibrant.reporting.drawing.markup import Markup
from calibrant.reporting.layout import elements
from calibrant.reporting.layout import elements as keys
from calibrant.reporting.layout.elements import group_table, map_table, range_table, rich, threshold_table
from calibrant.reporting.text import Table
from tests.reporting import hand_made
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
    table = Table("Heading", ("a", "b"), (("<", "1"),))
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


@pytest.mark.parametrize("key", [keys.probability_key("payment", "fraud"), keys.confidence_key("payment")])
def test_keys_explain_what_is_drawn_in_the_words_of_the_user(key):
    for style in ("ref", "curve", "confband", "nullband", "dot"):
        assert f'class="{style}"' in key
    assert key.count("<li>") == 5
    assert "Of 100 payments" in key


def test_the_key_of_implied_shares_names_no_bands():
    assert "band" not in keys.implied_key("19 %")


def test_words_are_escaped():
    assert "<img" not in keys.probability_key(HOSTILE, HOSTILE) + keys.confidence_key(HOSTILE)


def lines(table):
    tree = ElementTree.fromstring(table)
    return [["".join(cell.itertext()).replace("\u00a0", " ") for cell in line] for line in tree.iter("tr")]


def test_maps_say_what_remains_and_what_is_gained():
    found = lines(map_table(hand_made.recalibration()))
    assert found[0][3] == "Log loss lower by, %"
    assert found[1][0] == "Platt scaling"
    assert found[1][1].startswith("≤ 0.")
    assert found[1][3:] == ["1.7 (0.9 to 2.5)", "best"]
    assert found[5][3:] == ["0.0 (−0.8 to 0.8)", "may not help"]
    crps = replace(hand_made.recalibration(), loss="CRPS")
    assert lines(map_table(crps))[0][3] == "CRPS lower by, %"


def test_where_the_error_sits():
    found = lines(range_table(hand_made.reliability().ranges))
    assert [line[0] for line in found[1:]] == ["below 0.2 %", "0.2 to 1 %", "1 to 5 %", "5 to 20 %", "above 20 %"]
    assert found[-1][-1].strip() == "66 %"
    unknown = [replace(b, share=None) for b in hand_made.reliability().ranges]
    assert lines(range_table(unknown))[1][-1] == ""


def test_the_threshold():
    threshold = hand_made.reliability().threshold
    found = lines(threshold_table(threshold))
    assert found[1][0] == "Scored 8 to 12.5 %"
    assert found[2][0] == "Scored 10 % and above"
    assert len(lines(threshold_table(Threshold(0.1, None, threshold.above)))) == 2


def cells(rows, column="country", **options):
    tree = ElementTree.fromstring(group_table(rows, column, **options))
    head = ["".join(cell.itertext()) for cell in tree.iter("th")]
    return head, [["".join(cell.itertext()) for cell in line.iter("td")] for line in tree.find("tbody")]


def test_every_number_stands_in_the_table():
    head, lines = cells(hand_made.groups().rows)
    assert head[0] == "Country"
    assert head[-1] == "Adjusted p"
    assert lines[0][:4] == ["Poland", "1,558", "36", "57"]
    assert lines[0][5:] == ["0.64 (0.46 to 0.89)", "0.8 (0.2 to 1.5)", "too high", "< 0.001"]
    assert lines[3][-2:] == ["not flagged", "0.21"]


def test_groups_that_cannot_be_judged_say_so():
    rows = [replace(row, judged=False, flagged=False) for row in hand_made.groups().rows]
    assert cells(rows)[1][0][-2:] == ["too few to judge", "–"]


def test_forecasts_have_no_counts_of_events():
    spread = hand_made.regression().sections[1]
    head, lines = cells(spread.rows, spread.column, spread=True)
    assert head[:2] == ["Lead time", "Rows"]
    assert "Expected" not in head
    assert len(lines[0]) == len(head)


def test_classes_share_their_rows_so_these_are_not_repeated():
    head, lines = cells(hand_made.classes().rows, "class")
    assert "Rows" not in head
    assert lines[0][0] == "Other"


def test_names_are_escaped_and_long_ones_may_break():
    rows = [replace(row, name=hand_made.HOSTILE * 3) for row in hand_made.groups().rows]
    table = group_table(rows, hand_made.HOSTILE)
    assert "<img" not in table
    assert "short" not in table
    lengths = [replace(row, name="x" * length) for row, length in zip(rows, (24, 25), strict=False)]
    assert group_table(lengths, "name").count("short") == 1


def test_examples_of_rich() -> None:
    assert (
        rich("Use `by_group`. **What to do.** <Nothing>")
        == "Use <code>by_group</code>. <b>What to do.</b> &lt;Nothing&gt;"
    )
