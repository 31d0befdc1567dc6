"""The script that counts flagged groups."""

from reproduce.groups_coverage import flagged


def test_a_reversed_group_is_found_and_calibrated_ones_seldom_flagged():
    found = flagged(20, 100, 6)
    assert found["reversed_below_0.001"] == 1
    assert found["any_flagged"] <= 0.5
    assert found["standard_error_at_5"] > 0.05
