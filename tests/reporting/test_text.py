"""A report in words: numbers, escapes, every form."""

import json

from calibrant.reporting.text import number, p_value, points


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
