"""Families of corrections: prior weights, units, and what they leave alone."""

import numpy as np
import pytest

from calibrant.recalibrate.log_odds_corrections import LARGEST, Corrections, fit_families

SCORES = np.linspace(-3.0, 4.0, 60)


def weights(corrections, x=SCORES):
    return np.concatenate([family.weight for family in corrections.families(x)])


@pytest.mark.parametrize("rows", [20, 60])
def test_prior_weights_are_shares_but_for_waves_that_few_rows_do_not_have(rows):
    corrections = Corrections.of(SCORES[:rows], np.ones(rows))
    names = [name for family in corrections.families(SCORES) for name in family.members]
    assert len(names) == len(set(names)) == len(weights(corrections))
    assert weights(corrections).sum() == pytest.approx(1.0 if rows == 60 else 0.95)
    assert any(name.startswith("waves") for name in names) == (rows == 60)


def test_centre_and_spread_are_weighted_by_information():
    corrections = Corrections.of(SCORES, np.arange(1.0, 61.0))
    information = np.arange(1.0, 61.0) * np.exp(-SCORES) / (1 + np.exp(-SCORES)) ** 2
    centre = np.average(SCORES, weights=information)
    assert corrections.centres[0] == pytest.approx(centre)
    assert corrections.spreads[0] == pytest.approx(np.sqrt(np.average((SCORES - centre) ** 2, weights=information)))
    assert Corrections.of(np.array([1.0]), np.array([5.0])).spreads[0] == 0.05


def test_scores_beyond_what_n_rows_can_tell_are_cut_in_some_members():
    """The weight of these is larger where some scores are certain."""
    for top, share in ((4.0, 0.0), (9.0, 0.4), (LARGEST, 0.6)):
        corrections = Corrections.of(np.append(SCORES[:-1], top), np.ones(60))
        cut = [family for family in corrections.families(SCORES) if "cut at 5.5" in family.note]
        assert sum(family.weight.sum() for family in cut) == pytest.approx(share)
    assert max(family.offset.max() for family in cut) <= np.log(240)


def test_corrections_are_constant_beyond_the_scores_by_more_than_one_unit():
    corrections = Corrections.of(SCORES, np.ones(60))
    far = 4.0 + corrections.spreads[0] + np.array([0.0, 1.0, 20.0])
    for family in corrections.families(far):
        np.testing.assert_allclose(family.basis, np.broadcast_to(family.basis[:1], family.basis.shape))


def test_fits_and_slopes_are_those_of_the_corrected_log_odds():
    corrections = Corrections.of(SCORES, np.ones(60))
    positive = (SCORES < 0.5).astype(float)  # the order of the scores is turned round
    for family in corrections.families(SCORES):
        coefficients, _ = fit_families([family], [(positive, 1 - positive)])[0]
        slope = family.slope(coefficients)
        if family.name in ("identity", "level"):
            assert (slope == 1).all()
        if family.name in ("slope", "affine"):
            ends = (family.offset + coefficients @ family.basis.T)[:, [0, -1]]
            np.testing.assert_allclose((ends[:, 1] - ends[:, 0]) / 7.0, slope, rtol=1e-9)
            assert slope[-1] < 0


def test_corners_rise_from_end_to_end():
    corners = Corrections.of(np.array([-3.0, -3.0 + 1e-12, 2.0, LARGEST]), np.ones(4)).corners
    assert (np.diff(corners) > 1e-5).all()
    assert corners[0] == -LARGEST
    assert corners[-1] == LARGEST
