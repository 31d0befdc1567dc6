"""Names of columns are honoured; labels that fit none of them are refused with the remedy."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.data.labels import class_codes, numbered

RNG = np.random.default_rng(0)
P = RNG.dirichlet([1, 1, 1], 40)
Y = np.array([RNG.choice(3, p=p) for p in P])
ANIMALS = np.array(["ant", "cat", "dog"])
EXPECTED = float(cal.brier(cal.Multiclass(Y, P)))
ORDER = [2, 0, 1]


def brier(y, frame, **options):
    return float(cal.brier(cal.Multiclass(y, frame, **options)))


@pytest.mark.parametrize(
    "make", [set, frozenset, dict.fromkeys, lambda v: dict.fromkeys(v).keys(), lambda v: {k: k for k in v}.values()]
)
@pytest.mark.parametrize("y", [ANIMALS[Y], np.eye(3)[Y]], ids=["labels", "indicators"])
def test_classes_without_an_order_are_refused(make, y):
    with pytest.raises(cal.InvalidPredictions, match="classes must be a list of labels, one per column in their order"):
        cal.Multiclass(y, P, classes=make(ANIMALS.tolist()))


def test_columns_called_by_numbers_are_those_classes():
    assert brier(Y, pd.DataFrame(P[:, ORDER], columns=ORDER)) == pytest.approx(EXPECTED, abs=1e-15)
    assert cal.Multiclass(Y, pd.DataFrame(P[:, ORDER], columns=ORDER)).classes == (2, 0, 1)


@pytest.mark.parametrize("name", ["{}", "p_{}", "p_{}_model", "{} probability"])
@pytest.mark.parametrize("labels", [ANIMALS, np.array(["0", "1", "2"])], ids=["words", "digits"])
@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_that_hold_the_labels_are_matched(name, labels, container):
    frame = container({name.format(labels[k]): P[:, k] for k in ORDER})
    data = cal.Multiclass(labels[Y], frame)
    assert data.classes == tuple(labels[ORDER])
    assert float(cal.brier(data)) == pytest.approx(EXPECTED, abs=1e-15)


@pytest.mark.parametrize("name", ["{}", "p{}", "class {} (%)"])
def test_numbers_in_names_are_matched_with_numbers(name):
    frame = pd.DataFrame({name.format(k): P[:, k] for k in ORDER})
    assert brier(Y, frame) == pytest.approx(EXPECTED, abs=1e-15)
    with pytest.raises(cal.InvalidPredictions, match=r"cannot be matched|must be one of the 3 classes"):
        cal.Multiclass(Y + 1, frame)


UNMATCHED = {
    "no name in common": (ANIMALS[Y], ["a", "b", "c"], r"\('ant', 'cat', 'dog'\) cannot be matched .*pass classes="),
    "numbers against words": (Y, list(ANIMALS), r"\(0, 1, 2\) cannot be matched .*pass classes="),
    "two readings": (np.array(["a"] * 40), ["aab", "aac", "aad"], "cannot be matched"),
    "a misspelt label": (
        np.where(Y == 0, "atn", ANIMALS[Y]),
        list(ANIMALS),
        r"first: y_true\[\d+\] = 'atn'\). Unknown: 'atn'",
    ),
    "twice the same name": (ANIMALS[Y], ["ant", "ant", "dog"], "Two columns are called 'ant'"),
}


@pytest.mark.parametrize(("y", "names", "message"), UNMATCHED.values(), ids=UNMATCHED)
def test_what_cannot_be_matched_is_refused(y, names, message):
    with pytest.raises(cal.InvalidPredictions, match=message):
        cal.Multiclass(y, pd.DataFrame(P, columns=names))


def test_classes_say_what_names_do_not():
    assert brier(Y, pd.DataFrame(P, columns=list("abc")), classes=[0, 1, 2]) == EXPECTED
    assert brier(ANIMALS[Y], P[:, ORDER], classes=ANIMALS[ORDER]) == pytest.approx(EXPECTED, abs=1e-15)
    for names in (list(ANIMALS[ORDER]), [f"p_{label}" for label in ANIMALS[ORDER]]):
        with pytest.raises(cal.InvalidPredictions, match=r"classes names the columns 'ant', .* called"):
            cal.Multiclass(ANIMALS[Y], pd.DataFrame(P, columns=names), classes=ANIMALS)


def test_missing_labels_are_refused():
    for missing in (None, np.nan, pd.NA):
        with pytest.raises(cal.InvalidPredictions, match=r"y_true must not be missing, but 1 of 40 .*\[3\]"):
            cal.Multiclass(np.array([*ANIMALS[Y][:3], missing, *ANIMALS[Y][4:]], dtype=object), P)
    with pytest.raises(cal.InvalidPredictions, match=r"y_true\[3\] = nan"):
        cal.Multiclass(np.where(np.arange(40) == 3, np.nan, Y), P)


def test_numbers_as_text_have_no_order_where_that_of_text_is_another():
    labels = np.array([str(k) for k in range(11)])
    with pytest.raises(cal.InvalidPredictions, match=r"numbers as text \('0', '1', '10', .*pass classes="):
        cal.Multiclass(labels, np.full((11, 11), 1 / 11))
    assert cal.Multiclass(labels[:10], np.full((10, 10), 0.1)).classes == tuple(labels[:10])


def test_one_column_per_class_as_outcome():
    indicators = np.eye(3)[Y]
    assert brier(indicators, P) == EXPECTED
    assert brier(indicators.astype(bool), P) == EXPECTED
    swapped = pd.DataFrame(indicators[:, ORDER], columns=ANIMALS[ORDER])
    assert brier(swapped, pd.DataFrame(P, columns=ANIMALS)) == EXPECTED
    data = cal.Multiclass(swapped, pd.DataFrame(P, columns=[f"p_{label}" for label in ANIMALS]))
    assert (data.classes, float(cal.brier(data))) == (tuple(ANIMALS), EXPECTED)
    assert cal.Multiclass(pd.DataFrame(indicators, columns=ANIMALS), P).classes == tuple(ANIMALS)
    with pytest.raises(cal.InvalidPredictions, match="single 1 per row, or probabilities that sum to 1, but 40 of 40"):
        cal.Multiclass(np.ones((40, 3)), P)
    with pytest.raises(cal.InvalidPredictions, match="y_true has 2 columns, expected 3"):
        cal.Multiclass(np.eye(2)[Y % 2], P)


def test_logits_in_place_of_probabilities():
    logits = np.log(P) + RNG.normal(size=(40, 1))
    assert brier(Y, None, logits=logits) == pytest.approx(EXPECTED, abs=1e-15)
    frame = pd.DataFrame(logits[:, ORDER], columns=ANIMALS[ORDER])
    assert brier(ANIMALS[Y], None, logits=frame) == pytest.approx(EXPECTED, abs=1e-15)
    for given in ({}, {"y_prob": P, "logits": logits}):
        with pytest.raises(cal.InvalidPredictions, match="Give y_prob"):
            cal.Multiclass(Y, **given)
    with pytest.raises(cal.InvalidPredictions, match="logits must be finite"):
        cal.Multiclass(Y, logits=np.where(P > 0.5, np.inf, logits))


def test_the_event_of_two_labels():
    labels = np.where(Y == 0, "fraud", "ok")
    expected = cal.Binary(Y == 0, P[:, 0])
    np.testing.assert_array_equal(cal.Binary(labels, P[:, 0], positive="fraud").y_true, expected.y_true)
    np.testing.assert_array_equal(
        cal.Binary(pd.Series(labels, dtype="category"), P[:, 0], positive="fraud").y_true, expected.y_true
    )
    np.testing.assert_array_equal(cal.Binary(np.where(Y == 0, 2, 1), P[:, 0], positive=2).y_true, expected.y_true)
    with pytest.raises(
        cal.InvalidPredictions, match="positive='Fraud' is not a label of y_true, which holds 'fraud', 'ok'"
    ):
        cal.Binary(labels, P[:, 0], positive="Fraud")
    with pytest.raises(cal.InvalidPredictions, match="must hold two labels, but it holds 3: 'ant', 'cat', 'dog'"):
        cal.Binary(ANIMALS[Y], P[:, 0], positive="ant")
    with pytest.raises(cal.InvalidPredictions, match="positive="):
        cal.ece(labels, P[:, 0])


def test_numbers_in_names():
    assert numbered(["p2", "p0"]) == (2, 0)
    assert numbered(["p2", "q0"]) is numbered(["a", "b"]) is numbered(["p1", "p01"]) is numbered([0, "p1"]) is None


def test_recalibrators_honour_names_when_fitted_and_when_used():
    frame, swapped = (pd.DataFrame(P[:, order], columns=ANIMALS[order]) for order in ([0, 1, 2], ORDER))
    fitted = cal.recalibrate.Temperature().fit(frame, ANIMALS[Y])
    again = cal.recalibrate.Temperature().fit(swapped, ANIMALS[Y])
    assert fitted.classes_.tolist() == ANIMALS.tolist()
    np.testing.assert_allclose(again.predict_proba(swapped), fitted.predict_proba(frame)[:, ORDER], rtol=1e-6)
    np.testing.assert_array_equal(fitted.predict_proba(swapped), fitted.predict_proba(frame))
    with pytest.raises(cal.InvalidPredictions, match="scores has the columns 'ant', 'cat', 'emu', but the classes are"):
        fitted.predict_proba(frame.rename(columns={"dog": "emu"}))
    with pytest.raises(cal.InvalidPredictions, match=r"y must be one of the 3 classes.*Unknown: 'emu'"):
        cal.recalibrate.Temperature().fit(frame, np.where(Y == 0, "emu", ANIMALS[Y]))
    with pytest.raises(cal.InvalidPredictions, match="cannot be matched"):
        cal.recalibrate.Temperature().fit(frame, Y)


SHARES = RNG.dirichlet([0.5, 0.5, 0.5], 40)
SOFT = cal.Multiclass(SHARES, P, weight=RNG.random(40) + 0.5)


def drawn(data):
    """Every row once per class, with the weight of its probability: what a linear measure averages over."""
    rows, codes = np.repeat(np.arange(len(data)), 3), np.tile(np.arange(3), len(data))
    return cal.Multiclass(codes, data.y_prob[rows], weight=data.weight[rows] * data.label_shares.ravel())


LINEAR = {
    "brier": cal.brier,
    "log_loss": cal.log_loss,
    "floored log_loss": lambda data: cal.log_loss(data, floor=0.01),
    "ece of the top label": lambda data: cal.ece(data.top_label(), bins=cal.EqualWidth(5)),
    "mce of the top label": lambda data: cal.mce(data.top_label(), bins=cal.EqualWidth(5)),
    "brier of the top label": lambda data: cal.brier(data.top_label()),
    "log_loss of one class": lambda data: cal.log_loss(data.one_vs_rest()[1]),
    "classwise ece": lambda data: cal.classwise(lambda one: cal.ece(one, bins=cal.EqualWidth(5), norm=2), data),
}


@pytest.mark.parametrize("measure", LINEAR.values(), ids=LINEAR)
def test_labels_that_are_probabilities_are_averaged_over(measure):
    assert float(measure(SOFT)) == pytest.approx(float(measure(drawn(SOFT))), rel=1e-12)
    some = np.arange(0, 40, 3)
    assert float(measure(SOFT.take(some))) == pytest.approx(float(measure(drawn(SOFT.take(some)))), rel=1e-12)


def test_equal_mass_bins_of_probable_labels_count_rows():
    plain = cal.Multiclass(SHARES, P)
    top = plain.top_label()
    order = np.argsort(top.y_prob)
    gaps = [abs((top.y_prob - top.label_shares)[part].mean()) for part in np.split(order, 4)]
    found = cal.ece(top, bins=4)
    assert float(found) == pytest.approx(np.mean(gaps), rel=1e-12)
    assert (found.n, found.bins) == (40, None)


NEED_CLASSES = {
    "kernel_error": cal.kernel_error,
    "variational_error": cal.variational_error,
    "variational_error of the top label": lambda data: cal.variational_error(data.top_label()),
    "simulation": lambda data: cal.simulate.fit_world(data.top_label()),
    "debiased_ece": lambda data: cal.debiased_ece(data.top_label()),
    "sweep_ece": lambda data: cal.sweep_ece(data.top_label()),
    "smooth_ece": lambda data: cal.smooth_ece(data.top_label()),
    "decompose": lambda data: cal.decompose(data.top_label()),
    "auc": lambda data: cal.auc(data.top_label()),
    "interval": lambda data: cal.interval(cal.ece, data.top_label()),
    "bootstrap": lambda data: cal.interval(cal.ece, data.top_label(), method=cal.Bootstrap(draws=9)),
    "calibration_test": lambda data: cal.calibration_test(data.top_label()),
    "reliability_curve": lambda data: cal.reliability_curve(data.top_label()),
    "binned reliability_curve": lambda data: cal.reliability_curve(data.top_label(), bins=5),
    "compare": lambda data: cal.compare(cal.ece, data.top_label(), data.top_label()),
    "BinTable": lambda data: cal.BinTable.of(data.top_label(), cal.EqualWidth(5)),
    "recalibrate": lambda data: cal.recalibrate.Temperature().fit(data),
    "recalibrate the top label": lambda data: cal.recalibrate.Platt().fit(data.top_label()),
    "report": cal.report,
}


@pytest.mark.parametrize("measure", NEED_CLASSES.values(), ids=NEED_CLASSES)
def test_what_needs_observed_classes_refuses_probabilities(measure):
    with pytest.raises(cal.InvalidPredictions, match="labels are probabilities of classes, but"):
        measure(cal.Multiclass(SHARES, P))


def test_classes_that_no_label_in_an_array_can_be_are_refused():
    for options in ({"classes": ["a", "a\0"]}, {}):
        p = pd.DataFrame(P[:, :2] / P[:, :2].sum(axis=1, keepdims=True), columns=["a", "a\0"])
        with pytest.raises(cal.InvalidPredictions, match=r"The class 'a\\x00' ends in a null character"):
            cal.Multiclass(np.array(["a", "a\0"])[Y % 2], p, **options)


def test_a_message_lists_five_labels():
    names = [f"c{k}" for k in range(12)]
    with pytest.raises(cal.InvalidPredictions, match=r"'c0', 'c1', 'c2', 'c3', 'c4', \.\.\. \(12 in all\)"):
        cal.Multiclass(["c0", "z"], pd.DataFrame(np.full((2, 12), 1 / 12), columns=names))


def test_examples_of_class_codes():
    codes, known = class_codes(np.array(["dog", "cat"]), 2, names=("p_cat", "p_dog"))
    assert (codes.tolist(), known) == ([1, 0], ("cat", "dog"))
    data = cal.Multiclass(["dog"], [[0.8, 0.2]], classes=["cat", "dog"]).in_order_of(["dog", "cat"])
    assert data.y_prob.tolist() == [[0.2, 0.8]]
