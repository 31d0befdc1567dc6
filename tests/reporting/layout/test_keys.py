"""Every line, band and marker of a diagram has its words."""

import pytest

from calibrant.reporting.layout import keys


@pytest.mark.parametrize("key", [keys.PROBABILITY_KEY, keys.CONFIDENCE_KEY])
def test_keys_explain_what_is_drawn(key):
    for style in ("ref", "curve", "confband", "nullband", "dot"):
        assert f'class="{style}"' in key
    assert key.count("<li>") == 5


def test_the_key_of_implied_shares_names_no_bands():
    assert "band" not in keys.IMPLIED_KEY
