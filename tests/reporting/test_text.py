"""A report in words: numbers, escapes, every form."""

import json

from calibrant.reporting.model import Finding, Group, Measure, Report
from calibrant.reporting.text import number, p_value, points
from calibrant.results import Estimate


def test_numbers_read_well():
    assert (number(0.12345), number(12345.678), number(None)) == ("0.1235", "1.235e+04", "")
    assert (p_value(0.0004), p_value(0.04)) == ("< 0.001", "0.040")
    assert (points(0.0312), points(0.0001)) == ("3.1", "0.01")


def test_all_forms_carry_the_verdict_and_escape_what_users_named(over):
    assert over.verdict in str(over)
    assert json.loads(over.to_json())["verdict"] == over.verdict
    assert "&lt;script>" in over.to_markdown()
    assert 'a "quoted" \\| group' in over.to_markdown()
    for html in (over.to_html(), over._repr_html_()):
        assert "<script>alert(1)" not in html
        assert "<b>confident</b>" not in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_control_characters_reach_neither_a_terminal_nor_a_page():
    evil = "\x1b]0;title\x07\x1b[31m\u202ered"
    error = Estimate(0.1, name="Error", method="m", n=9)
    found = Report(
        title=evil, task="Probabilities", n=9, verdict=f"Worst is {evil}", measures=(Measure(error, headline=True),),
        groups=(Group(evil, 9, error, 0.5),), findings=(Finding("CAL101", "note", f"Group {evil} is off."),),
    )  # fmt: skip
    for text in (str(found), found.to_markdown(), found._repr_html_()):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
        assert "x1b" in text
