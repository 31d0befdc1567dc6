"""A mean score in three parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from tests.estimators.worlds import columns, over_world, tempered, weighted_rows
from tests.numerics.worlds import draw_classes

PARTS = ("score", "miscalibration", "discrimination", "uncertainty")


@pytest.mark.no_cover
@given(weighted_rows, st.sampled_from(["brier", "log_loss"]), st.booleans())
def test_the_parts_make_up_the_score_and_none_is_negative(rows, score, weighted):
    p, y, w = columns(rows)
    p = np.clip(np.round(p, 2), 0.01, 0.99)
    parts = cal.decompose(cal.Binary(y, p, weight=w if weighted else None), score=score)
    assert parts.score == pytest.approx(parts.miscalibration - parts.discrimination + parts.uncertainty, abs=1e-12)
    assert min(parts.miscalibration, parts.discrimination, parts.uncertainty) >= -1e-12
    assert parts.refinement == pytest.approx(parts.score - parts.miscalibration)


@pytest.mark.no_cover
@given(weighted_rows, st.booleans())
def test_miscalibration_is_what_isotonic_regression_saves(rows, weighted):
    p, y, w = columns(rows)
    p = np.round(p, 1) * 0.9 + 0.05
    weight = w if weighted else np.ones(len(p))
    fit = IsotonicRegression(y_min=0, y_max=1).fit(p, y, sample_weight=weight)
    saved = np.average((p - y) ** 2, weights=weight) - np.average((fit.predict(p) - y) ** 2, weights=weight)
    assert cal.decompose(cal.Binary(y, p, weight=weight if weighted else None)).miscalibration == pytest.approx(
        saved, abs=1e-9
    )


def test_a_recalibrated_forecast_has_no_miscalibration():
    assert cal.decompose(cal.Binary([0, 1, 1, 1], [0.5, 0.5, 1.0, 1.0])).miscalibration == pytest.approx(0.0)


def test_a_decomposition_exports_plain_types():
    parts = cal.decompose(cal.Binary([0, 1], [0.2, 0.7])).to_dict()
    assert set(parts) == {"score", "miscalibration", "discrimination", "uncertainty"}


def test_refinement_and_decomposition_add_up():
    data = over_world(np.random.default_rng(20), 3000)
    for score, norm, whole in (("brier", "squared", cal.brier(data)), ("log_loss", "kl", cal.log_loss(data))):
        parts = cal.decompose(data, score=score, method="variational")
        assert parts.score == pytest.approx(float(whole), rel=1e-9)
        assert parts.miscalibration == cal.variational_error(data, norm=norm)
        assert parts.refinement == pytest.approx(float(cal.refinement(data, score=score)))
        assert parts.score == pytest.approx(parts.miscalibration - parts.discrimination + parts.uncertainty)
        corp = cal.decompose(data, score=score)
        assert parts.uncertainty == pytest.approx(float(corp.uncertainty))
    with pytest.raises(ValueError, match="method must be"):
        cal.decompose(data, method="isotonic")


def test_several_classes_decompose_too():
    rng = np.random.default_rng(21)
    f = rng.dirichlet(np.ones(3), 1000)
    data = cal.Multiclass(draw_classes(rng, tempered(2)(f)), f)
    parts = cal.decompose(data, score="log_loss", method="variational")
    assert parts.score == pytest.approx(float(cal.log_loss(data)), rel=1e-6)
    assert parts.miscalibration > 0.02
    assert cal.decompose(data, score="log_loss").to_dict() == parts.to_dict()
    squared = cal.decompose(data)
    assert squared.score == pytest.approx(float(cal.brier(data)), rel=1e-6)
    total = squared.miscalibration - squared.discrimination + squared.uncertainty
    assert total == pytest.approx(float(squared.score))
    share = np.bincount(data.y_true, minlength=3) / 1000
    assert squared.uncertainty == pytest.approx(1 - share @ share)
    with pytest.raises(cal.InvalidPredictions, match="Isotonic"):
        cal.decompose(data, method="corp")


def test_unknown_scores_and_methods_are_refused():
    with pytest.raises(ValueError, match="'brier' or 'log_loss'"):
        cal.decompose([0, 1], [0.2, 0.7], score="crps")
    with pytest.raises(ValueError, match="'corp' or 'variational'"):
        cal.decompose([0, 1], [0.2, 0.7], method="isotonic")


@pytest.mark.parametrize("score", ["brier", "log_loss"])
def test_a_table_and_any_order_give_the_parts_of_the_rows(score):
    rng = np.random.default_rng(3)
    p = np.round(rng.random(300) * 0.98 + 0.01, 2)
    y, w, order = rng.random(300) < p, rng.integers(1, 4, 300).astype(float), rng.permutation(300)
    plain = [getattr(cal.decompose(y, p, score=score), part) for part in PARTS]
    for same in (cal.BinTable.of(cal.Binary(y, p), cal.table.Distinct()), cal.Binary(y[order], p[order])):
        found = cal.decompose(same, score=score)
        assert [getattr(found, part) for part in PARTS] == pytest.approx(plain, rel=1e-9)
    weighted = cal.decompose(cal.Binary(y, p, weight=w), score=score)
    repeated = cal.decompose(np.repeat(y, w.astype(int)), np.repeat(p, w.astype(int)), score=score)
    for part in PARTS:
        assert getattr(weighted, part) == pytest.approx(float(getattr(repeated, part)), rel=1e-9)


def test_the_parts_written_out():
    y, p = np.array([0, 1, 0, 1]), np.array([0.2, 0.4, 0.6, 0.8])
    parts = cal.decompose(y, p)
    isotonic = np.array([0.0, 0.5, 0.5, 1.0])  # the second and the third row are pooled
    assert parts.miscalibration == pytest.approx(((p - y) ** 2).mean() - ((isotonic - y) ** 2).mean())
    assert parts.discrimination == pytest.approx(0.25 - ((isotonic - y) ** 2).mean())
    assert parts.uncertainty == pytest.approx(0.25)
