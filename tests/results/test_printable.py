"""No control character of a user's text gets through."""

import pytest

from calibrant.results.printable import printable


@pytest.mark.parametrize("text", ["plain", "Österreich", "日本", "a b", "emoji 👩\u200d💻", 'tab le\'s "x" \\ | <b>'])
def test_text_that_only_shows_stays_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("a\nb\rc\td\x00", r"a\nb\rc\td\x00"),
        ("\u202eabc\u2066", r"\u202eabc\u2066"),
        ("\u2028", r"\u2028"),
        ("\ud800", r"\ud800"),
        ("\x7f\x08", r"\x7f\x08"),
    ],
)
def test_what_acts_is_written_out(text, shown):
    assert printable(text) == shown
    assert printable(text).isprintable()


def test_anything_has_a_text():
    assert printable(7) == "7"
    assert printable(None) == "None"
