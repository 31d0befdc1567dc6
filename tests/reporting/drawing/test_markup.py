"""Text is escaped wherever it enters an element; markup is not escaped twice."""

import pytest

from calibrant.reporting.drawing.markup import Markup, escaped, joined, number, tag

HOSTILE = "</title><script>alert('1')</script>\"&\x1b[31m\u202e"


def test_text_of_users_can_neither_end_nor_begin_an_element():
    made = tag("text", HOSTILE, data_tip=HOSTILE)
    assert "<script" not in made
    assert "\x1b" not in made
    assert "\u202e" not in made
    assert made.count("<") == 2  # its own start and end


def test_markup_is_taken_as_it_is():
    assert tag("p", tag("b", "<")) == "<p><b>&lt;</b></p>"
    assert joined([Markup("<br>"), "<br>"]) == "<br>&lt;br&gt;"


def test_numbers_keep_their_signs_except_where_text_is_copied():
    assert tag("p", "5 % (p < 0.001)") == "<p>5\u00a0% (p\u00a0&lt;\u00a00.001)</p>"
    assert tag("pre", "7 % 2") == "<pre>7 % 2</pre>"
    assert tag("code", "7 % 2") == "<code>7 % 2</code>"


def test_lines_of_a_hint_stay_lines():
    assert tag("g", data_tip="one\ntwo") == '<g data-tip="one\ntwo"></g>'
    assert escaped("one\r\ntwo") == "one\\r\ntwo"


@pytest.mark.parametrize(
    ("attributes", "shown"),
    [
        ({"class_": None}, ""),
        ({"checked": True}, " checked"),
        ({"checked": False}, ""),
        ({"x": 1.25, "y": 3}, ' x="1.2" y="3"'),
    ],
)
def test_attributes(attributes, shown):
    assert tag("rect", **attributes) == f"<rect{shown}/>"


def test_coordinates_are_short():
    assert [number(v) for v in (0.0, -0.04, 12.349, 100.0)] == ["0", "0", "12.3", "100"]


def test_examples_of_tag() -> None:
    assert (
        tag("a", "1 < 2", href="#top", data_tip='"quoted"')
        == '<a href="#top" data-tip="&quot;quoted&quot;">1 &lt; 2</a>'
    )
    assert tag("p", "both ", tag("b", "bold"), class_="lead") == '<p class="lead">both <b>bold</b></p>'


def test_examples_of_joined() -> None:
    assert joined(["a & b", Markup("<br>"), None]) == "a &amp; b<br>"


def test_examples_of_escaped() -> None:
    assert escaped("<b>\x1b[1m") == "&lt;b&gt;\\x1b[1m"


def test_examples_of_number() -> None:
    assert (number(3.14159), number(-0.01), number(40.0)) == ("3.1", "0", "40")
