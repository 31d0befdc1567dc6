"""What other libraries hand over: read without loss, or refused with the reason."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy import sparse

import calibrant as cal
from calibrant.data.predictions import Binary
from calibrant.data.validation import column_names, frozen, is_exact, is_missing, read, row_index, typed
from calibrant.scale.streaming import batch_rows

Y, P = [0, 1, 1, 0], [0.125, 0.5, 0.75, 0.25]
MASK = [False, True, False, False]


def masked(values):
    return np.ma.array(values, mask=MASK)


@pytest.mark.parametrize(
    "make",
    [
        lambda: cal.Binary(masked(Y), P),
        lambda: cal.Binary(Y, masked(P)),
        lambda: cal.Binary(Y, P, weight=masked(P)),
        lambda: cal.Multiclass(masked(Y), np.stack([P, 1 - np.array(P)], axis=1)),
        lambda: cal.Multiclass(Y, np.ma.array(np.stack([P, 1 - np.array(P)], axis=1), mask=np.array([MASK, MASK]).T)),
        lambda: cal.Gaussian(masked(P), P, P),
        lambda: cal.Gaussian(P, P, masked(P)),
        lambda: cal.Quantiles(P, [0.5], masked(P)[:, None]),
        lambda: cal.Samples(P, np.ma.array([P, P], mask=[MASK, MASK]).T),
        lambda: cal.PositiveUnlabeled(masked(P), P, prior=0.4),
        lambda: cal.recalibrate.Platt().fit(masked(P), Y),
        lambda: cal.ece(Y, [np.ma.array([0.1], mask=[False]), *(np.ma.array([p], mask=[True]) for p in P[1:])]),
    ],
)
def test_a_mask_means_missing_and_is_never_lost(make):
    with pytest.raises(
        cal.InvalidPredictions, match=r"must not be missing, but \d of \d rows (is|are) \(first: .*\[1\]"
    ):
        make()


def test_masked_groups_are_the_missing_group():
    assert cal.Binary(Y, P, group=masked([1, 2, 3, 1])).row_groups()[0] == [1, 3, "(missing)"]


def test_an_array_whose_mask_hides_nothing_is_an_array():
    assert cal.ece(np.ma.array(Y), np.ma.array(P)) == cal.ece(Y, P)


REFUSED = {
    "text": ("0.5", r"got an object of type str\."),
    "generator": ((p for p in P), r"got an object of type generator: pass list\(y_prob\)"),
    "set": (set(P), r"got an object of type set\."),
    "mapping": (dict(enumerate(P)), r"got an object of type dict\."),
    "values of a mapping": (dict(enumerate(P)).values(), r"pass list\(y_prob\)"),
    "number": (0.5, r"one dimension, got shape \(\)"),
    "sparse matrix": (sparse.csr_array(np.array(P)[:, None]), r"sparse .* pass y_prob.toarray\(\)"),
    "sparse mapping": (sparse.dok_array(np.array(P)[:, None]), r"sparse .* pass y_prob.toarray\(\)"),
    "sparse tensor": (torch.tensor(P).to_sparse(), r"sparse .* pass y_prob.to_dense\(\)"),
    "structured": (np.array(list(zip(Y, P, strict=True)), dtype="i4,f8"), r"structured array \(f0, f1\)"),
    "complex": (np.array(P) + 0j, r"must hold numbers, got complex128"),
    "texts of numbers": ([str(p) for p in P], r"must hold numbers, got text .* Convert it"),
    "bytes": (np.array([b"0.5"] * 4), r"must hold numbers, got \|S3"),
    "dates": (np.array(["2024-01-01"] * 4, "M8[D]"), r"must hold numbers, got datetime64"),
    "mixture": (["0.1", 0.5, 0.75, 0.25], r"mixes text and other values \('0.1' and 0.5\)"),
    "huge": ([10**400, 0, 0, 0], r"beyond the range of double precision"),
    "pandas NA": (
        np.array([pd.NA, *P[1:]], dtype=object),
        r"must not be missing, but 1 of 4 rows is \(first: y_prob\[0\]",
    ),
    "nullable": (pd.Series([None, *P[1:]], dtype="Float64"), r"must not be missing, but 1 of 4"),
    "Polars null": (pl.Series([None, *P[1:]]), r"must not be missing, but 1 of 4"),
    "Arrow null": (pa.chunked_array([[None, 0.5], P[2:]]), r"must not be missing, but 1 of 4"),
    "lists with gradient": (
        [torch.tensor(p, requires_grad=True) for p in P],
        r"cannot be read as an array \(RuntimeErr",
    ),
    "lazy frame": (pl.LazyFrame({"p": P}), r"got an object of type LazyFrame"),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_holds_no_probabilities_is_refused_with_the_reason(given, message):
    with pytest.raises(cal.InvalidPredictions, match="y_prob .*" + message):
        cal.Binary(Y, given)


READ = {
    "nullable": pd.Series(P, dtype="Float64"),
    "nullable array": pd.array(P),
    "sparse series": pd.Series(pd.arrays.SparseArray(P)),
    "Arrow in pandas": pd.Series(P, dtype="double[pyarrow]"),
    "one column": pd.DataFrame({"p": P}),
    "decimals": [Decimal(str(p)) for p in P],
    "objects": np.array(P, dtype=object),
    "long double": np.array(P, dtype=np.longdouble),
    "big-endian": np.array(P, dtype=">f8"),
    "strided": np.repeat(P, 3)[::3],
    "memory view": memoryview(np.array(P)),
    "tuple": tuple(P),
}


@pytest.mark.parametrize("given", READ.values(), ids=READ)
def test_the_same_numbers_in_another_container_give_the_same_result(given):
    assert cal.ece(Y, given) == cal.ece(Y, P)


def test_whole_numbers_beside_nulls_stay_whole():
    large = 2**53 + 1
    for values in (pd.Series([large, None], dtype="Int64"), pl.Series([large, None]), pa.array([large, None])):
        array, missing = read("y", values)
        assert typed("y", array, missing)[0] == large
        assert missing.tolist() == [False, True]


def test_missing_values_of_every_library_are_recognised():
    assert all(map(is_missing, [None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("sNaN"), np.ma.masked]))
    assert not any(map(is_missing, [0, "", "nan", Decimal(0), np.datetime64("2024-01-01"), [None]]))


def test_objects_become_the_narrowest_type_that_holds_them():
    def kind(*values):
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return typed("y", array, None).dtype.kind

    assert [kind(True, False), kind(True, 2), kind(1, 0.5), kind("a"), kind(2**70, 1)] == ["b", "i", "f", "U", "f"]
    with pytest.raises(cal.InvalidPredictions, match="differ in length"):
        kind([1], [1, 2])


def test_names_of_columns_and_rows():
    frame = pd.DataFrame({"a": Y, 3: P})
    assert column_names(frame) == ("a", 3)
    assert column_names(pl.DataFrame({"a": Y})) == column_names(pa.table({"a": Y})) == ("a",)
    assert column_names(pd.DataFrame(np.zeros((2, 2)))) is column_names(np.zeros((2, 2))) is None
    assert row_index(frame) is frame.index
    assert row_index(frame.index) is frame.index
    assert row_index(pd.array([1, None], dtype="Int64")) is None
    assert row_index(np.zeros(2)) is row_index(pl.Series(Y)) is None


def test_frozen_arrays_cannot_be_reached_through_any_view():
    base = np.arange(4.0)
    view = base[:2]
    view.flags.writeable = False
    kept = frozen(view)
    base[0] = 9
    assert kept[0] == 0
    assert not kept.flags.writeable
    assert frozen(kept) is kept


@pytest.mark.parametrize("container", [np.array, pd.Series, torch.tensor], ids=["numpy", "pandas", "torch"])
def test_changing_an_array_after_construction_changes_nothing(container):
    y, p, w = container([0, 1, 1, 0]), container([0.1, 0.4, 0.9, 0.3]), container([1.0, 2.0, 1.0, 3.0])
    data = cal.Binary(y, p, weight=w)
    forecast = cal.Gaussian(p, w, w)
    before = float(cal.ece(data)), float(cal.crps(forecast))
    y[:], p[:], w[:] = 1, 0.99, 7.0
    assert (float(cal.ece(data)), float(cal.crps(forecast))) == before
    with pytest.raises(ValueError, match="read-only"):
        data.y_prob[0] = 0.5


@pytest.mark.parametrize(
    "measure",
    [
        lambda y, p: cal.Binary(y, p),
        lambda y, p: cal.ece(y, p),
        lambda y, p: cal.interval(cal.ece, y, p),
        lambda y, p: cal.Binary(y, y.to_numpy() * 0.5, weight=p),
        lambda y, p: cal.Multiclass(y, pd.DataFrame({0: p, 1: 1 - p})),
        lambda y, p: cal.Gaussian(y, p, p + 1),
        lambda y, p: cal.Gaussian(y, y, p + 1),
        lambda y, p: cal.PositiveUnlabeled.from_labels(y, p, prior=0.4, scenario="case-control"),
        lambda y, p: cal.recalibrate.Platt().fit(p, y),
        lambda y, p: cal.by_group(cal.ece, cal.Binary(y, y * 0.5), by=p),
        lambda y, p: cal.by_group(cal.ece, cal.Binary(y.to_numpy(), y.to_numpy() * 0.5), by={"a": y, "b": p}),
        lambda y, p: cal.by_group(cal.ece, cal.Binary(y, y * 0.5), by={"predictions": p, "self": y}),
        lambda y, p: cal.Binary(y, y * 0.5).take(np.arange(20)).row_groups(p),
        lambda y, p: cal.Multiclass(y, pd.DataFrame({0: y, 1: 1 - y})).top_label().row_groups(p),
        lambda y, p: cal.Multiclass(y, pd.DataFrame({0: y, 1: 1 - y})).one_vs_rest()[0].row_groups(p),
        lambda y, p: cal.Gaussian(*[pd.DataFrame({0: y, 1: y}) + k for k in range(3)]).outputs[1].row_groups(p),
        lambda y, p: cal.PositiveUnlabeled.from_labels(
            1 - y.sort_values(ignore_index=True), y * 0.5, prior=0.4, scenario="case-control"
        ).require_same_rows(time=p),
        lambda y, p: Binary.borrowing(y, y * 0.5, group=p),
        lambda y, p: cal.scale.StreamingTable().update(y, p),
        lambda y, p: cal.scale.StreamingTable().update(y, y * 0.5, weight=p),
        lambda y, p: batch_rows(p, y, None),
        lambda y, p: cal.risk_coverage(cal.Binary(y, y * 0.5), confidence=p),
        lambda y, p: cal.risk_coverage(cal.Binary(y, y * 0.5), loss=p),
        lambda y, p: cal.simulate.fit_world(cal.Binary(y, y * 0.5 + 0.1), log_odds=p),
        lambda y, p: cal.simulate.fit_logit_mixture(y, p, components=1),
        lambda y, p: cal.compare(cal.brier, cal.Binary(y, y * 0.5), cal.Binary(p.round() * 0 + y.to_numpy(), p)),
    ],
)
def test_rows_with_different_labels_are_not_paired_by_position(measure):
    y, p = pd.Series([0, 1, 1, 0] * 5), pd.Series([0.1, 0.4, 0.9, 0.3] * 5)
    measure(y, p)
    with pytest.raises(
        cal.InvalidPredictions, match=r"different pandas indexes \(first in row 0: 0 and 19\).*to_numpy"
    ):
        measure(y, p[::-1])


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        lambda v: [[one] for one in v],
        lambda v: [one.encode() for one in v],
        lambda v: np.array(v, dtype=object),
        lambda v: np.array(v, dtype=np.dtypes.StringDType()),
        pd.Series,
        lambda v: pd.Series(v, dtype="category"),
        pl.Series,
        pa.array,
    ],
)
def test_text_that_numpy_would_cut_at_its_end_is_refused(make):
    for use in (
        lambda v: cal.Binary(Y, P, group=v),
        lambda v: cal.Multiclass(v, np.stack([P, np.subtract(1, P)], axis=1)),
        lambda v: cal.Binary(v, P, positive="a"),
        lambda v: cal.by_group(cal.brier, Y, P, by=v),
    ):
        with pytest.raises(cal.InvalidPredictions, match=r"ends in a null character \(b?'a\\x00'\): remove it"):
            use(make(["a", "a\0"] * (len(Y) // 2) + ["b"] * (len(Y) % 2)))


def test_labels_that_double_precision_cannot_tell_apart_are_refused():
    labels, p = [2**53, 2**53 + 1, 0.5], np.full((3, 3), 1 / 3)
    with pytest.raises(cal.InvalidPredictions, match=r"y_true .* cannot distinguish \(9007199254740992 and .*993\)"):
        cal.Multiclass(labels, p, classes=labels)
    assert cal.Binary([0, 1, 1], [0.1, 0.2, 0.3], weight=[2**53 + 1, 2**60, 0.5]).weight[1] == 2.0**60


def test_examples_of_is_exact() -> None:
    assert (is_exact(2**53), is_exact(2**53 + 1), is_exact(0.1)) == (True, False, True)
