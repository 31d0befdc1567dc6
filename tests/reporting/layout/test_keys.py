"""Every line, band and marker of a diagram has its words."""

import pytest

from calibrant.reporting.layout import keys
from tests.reporting.hand_made import HOSTILE


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
