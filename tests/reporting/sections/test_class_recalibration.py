"""Recalibration of several classes: maps of the whole vector, the simplest that does as well."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibrate import VectorScaling
from calibrant.reporting.sections.class_recalibration import class_recalibration
from calibrant.reporting.sections.how_to_apply import class_code, class_columns, commands
from calibrant.reporting.sections.omission import CannotBuild
from tests.reporting.sections.classes_worlds import classes
from tests.reporting.sections.running import run_commands

WHOLE_VECTOR = {"Temperature", "VectorScaling", "MatrixScaling", "Dirichlet"}


def test_an_over_sharp_softmax_is_told_temperature():
    section = class_recalibration(classes(sharp=1.6))
    assert {row.name for row in section.maps} == WHOLE_VECTOR
    assert (section.maps[0].name, section.maps[0].effect) == ("Temperature", "best")
    assert section.maps[0].remaining.low == 0.0
    assert section.loss_before == pytest.approx(float(cal.log_loss(classes(sharp=1.6))))


def test_a_class_that_is_too_low_needs_more_than_a_temperature():
    section = class_recalibration(classes(5000, lowered=1.0))
    assert section.maps[0].name == "VectorScaling"
    names = [row.name for row in section.maps]
    assert section.maps[names.index("Temperature")].gain.high < section.maps[0].gain.low


@pytest.mark.no_cover
def test_the_gain_is_that_of_maps_fitted_on_other_rows():
    data = classes(5000, lowered=1.0)
    fold, q = np.random.default_rng(1).permutation(5000) % 5, np.empty((5000, 4))
    for k in range(5):
        q[fold == k] = (
            VectorScaling().fit(data.y_prob[fold != k], data.y_true[fold != k]).predict_proba(data.y_prob[fold == k])
        )
    expected = 1 - float(cal.log_loss(cal.Multiclass(data.y_true, q))) / float(cal.log_loss(data))
    gain = class_recalibration(data).maps[0].gain
    assert gain.value == pytest.approx(expected, abs=0.003)
    assert gain.low < expected < gain.high


@pytest.mark.no_cover
def test_calibrated_vectors_are_not_repaired():
    found = [class_recalibration(classes(800, seed=seed)).maps[0].effect for seed in range(6)]
    assert found.count("best") <= 1


@pytest.mark.parametrize(
    "columns", [{"group": np.arange(3000) // 3}, {"weight": np.random.default_rng(0).random(3000)}]
)
def test_clusters_and_weights(columns):
    section = class_recalibration(classes(sharp=1.8, **columns))
    assert section.maps[0].effect == "best"
    assert section.maps[0].remaining.high < 0.15


def test_few_rows_have_no_matrix():
    names = {row.name for row in class_recalibration(classes(300, 10, sharp=2.0)).maps}
    assert names == {"Temperature", "VectorScaling"}


def test_brier_score_where_log_loss_is_infinite():
    data = classes(sharp=1.6)
    p = data.y_prob.copy()
    p[0] = np.eye(4)[(data.y_true[0] + 1) % 4]
    section = class_recalibration(cal.Multiclass(data.y_true, p))
    assert section.loss == "Brier score"
    assert section.loss_before == pytest.approx(float(cal.brier(cal.Multiclass(data.y_true, p))))


def test_what_cannot_be_judged():
    with pytest.raises(CannotBuild, match="Too few rows"):
        class_recalibration(classes(50))
    with pytest.raises(CannotBuild, match="one group"):
        class_recalibration(classes(300, group=[1] * 300))


def test_commands_and_code_recalibrate_alike(tmp_path):
    data, labels = classes(400, 3, sharp=1.5), ["cat", "big dog", "bird"]
    rows = [",".join([labels[y], *map(repr, p)]) for y, p in zip(data.y_true, data.y_prob.tolist(), strict=True)]
    (tmp_path / "labelled.csv").write_text("\n".join(["y,cat,big dog,bird", *rows]) + "\n")
    new = data.y_prob[:20]
    (tmp_path / "new.csv").write_text("\n".join(["cat,big dog,bird", *(",".join(map(repr, p)) for p in new.tolist())]))
    run_commands(commands("VectorScaling", class_columns(labels)), tmp_path)
    lines = (tmp_path / "recalibrated.csv").read_text().splitlines()
    found = np.array([line.split(",")[3:] for line in lines[1:]], dtype=float)
    space = {"y": data.y_true, "p": data.y_prob, "p_new": new}
    exec(class_code("VectorScaling"), space)
    np.testing.assert_allclose(found, space["recalibrated"], rtol=1e-9)
