"""Features as small codes: every kind of column and frame, readable cuts, and what is refused."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from calibrant.data.features import Column, Feature, coded, readable
from calibrant.data.validation import InvalidPredictions

COLUMNS = {
    "age": [30.0, None, 50.0, 30.0],
    "n": [1, 2, 3, 4],
    "who": ["a", None, "b", "a"] * 1,
    "flag": [True, False, None, True],
}


def kinds(X):
    features, codes = coded(X, 4)
    return [(one.name, one.kind) for one in features], [code.tolist() for code in codes]


def test_frames_and_mappings_give_the_same_codes():
    expected = [("age", "number"), ("flag", "flag"), ("n", "number"), ("who", "category")]
    frames = [COLUMNS, pl.DataFrame(COLUMNS), pa.table(COLUMNS), pd.DataFrame(COLUMNS)]
    frames += [pd.DataFrame(COLUMNS).convert_dtypes(), {k: pl.Series(k, v) for k, v in COLUMNS.items()}]
    frames.append({k: np.array(v, dtype=object) for k, v in COLUMNS.items()})
    found = [kinds(frame) for frame in frames]
    assert all(names == expected for names, _ in found)
    assert all(codes == found[0][1] for _, codes in found)
    age, flag, n, who = found[0][1]
    assert age == [0, 2, 1, 0]
    assert flag == [1, 0, 2, 1]
    assert n == [0, 1, 2, 3]
    assert who == [0, 1, 0, 0]  # of four rows no name is kept: all are (other), or missing


def test_categories_of_pandas_and_polars_are_texts():
    values = ["x", "y"] * 20
    for column in (pd.Series(values, dtype="category"), pl.Series(values, dtype=pl.Categorical), np.array(values)):
        (feature,), (codes,) = coded({"c": column}, 40)
        assert (feature.kind, feature.values) == ("category", ("x", "y"))
        assert codes.tolist() == [0, 1] * 20


def test_arrays_have_numbered_columns():
    features, _ = coded(np.arange(12.0).reshape(6, 2), 6)
    assert [one.name for one in features] == ["x0", "x1"]
    assert coded(pd.Series([1, 2], name="age"), 2)[0][0].name == "age"
    assert coded([1.0, 2.0], 2)[0][0].name == "x0"
    assert coded({"d": [Decimal(1), Decimal(2)]}, 2)[0][0].kind == "number"
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    assert coded({"m": masked}, 3)[1][0].tolist() == [0, 2, 1]


def test_numbers_are_cut_into_so_many_codes():
    rng = np.random.default_rng(0)
    (feature,), (codes,) = coded({"x": rng.normal(size=5000)}, 5000)
    assert feature.size == 33  # 32 ranges and missing
    assert np.bincount(codes, minlength=33)[:32].min() > 5000 / 32 / 2
    assert all(len(f"{cut:.12g}") <= 6 for cut in feature.cuts)
    (few,), _ = coded({"x": np.arange(100) % 32}, 100)
    assert few.cuts == tuple(map(float, range(1, 32)))


def test_a_value_of_many_rows_has_a_code_of_its_own():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(4000) < 0.3, 0.0, rng.normal(size=4000))
    _, (codes,) = coded({"x": x}, 4000)
    own = codes[x == 0.0]
    assert len(set(own)) == 1
    assert not np.any(codes[x != 0] == own[0]) or np.mean(x[codes == own[0]] == 0) > 0.98


def test_rare_categories_are_one():
    values = np.repeat([f"v{k:03d}" for k in range(301)], 10)
    values = np.append(values, ["rare"] * 9)
    (feature,), (codes,) = coded({"c": values}, len(values))
    assert len(feature.values) == 200
    assert "rare" not in feature.values
    assert feature.words(200, 200) == "c = (other)"
    assert codes[-1] == 200
    many = np.append(np.repeat(["often"], 39_980), ["seldom"] * 19 + ["x"])
    assert coded({"c": many}, 40_000)[0][0].values == ("often",)  # 0.05 % of 40,000 rows are 20


def test_conditions_in_words():
    age = Feature("age", "number", cuts=(18.0, 65.5))
    assert age.words(0, 0) == "age < 18"
    assert age.words(1, 1) == "18 <= age < 65.5"
    assert age.words(1, 2) == "age >= 18"
    assert age.words(3, 3) == "age is missing"
    assert age.words(0, 2) == "age is not missing"
    flag = Feature("paid", "flag", cuts=(1.0,))
    assert (flag.words(0, 0), flag.words(1, 1), flag.words(2, 2)) == ("paid = False", "paid = True", "paid is missing")
    place = Feature("place", "category", values=("DK",))
    assert [place.words(k, k) for k in range(3)] == ["place = DK", "place = (other)", "place = (missing)"]


def test_codes_of_a_fit_serve_new_rows():
    (feature,), _ = coded({"c": ["a"] * 12 + ["b"] * 12}, 24)
    found = coded({"c": ["b", "new", None], "more": [1, 2, 3]}, 3, features=[feature])[1]
    assert found[0].tolist() == [1, 2, 3]
    assert Feature.from_dict(feature.to_dict()) == feature


def test_rows_that_do_not_count_have_no_part_in_the_cuts():
    features, codes = coded({"x": [1.0, 2.0, 99.0], "c": ["a", "b", "c"]}, 3, rows=np.array([0, 1]))
    assert features[1].cuts == (2.0,)
    assert len(codes[0]) == len(codes[1]) == 2


@pytest.mark.parametrize("low", [-3.7, 0.0, 0.001234, 12345.678])
def test_readable_numbers_lie_between_their_ends(low):
    for width in (1e-6, 0.03, 2.0, 1e5):
        found = readable(low, low + width)
        assert low < found <= low + width


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ({"t": np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]")}, "days since a date"),
        (pl.DataFrame({"t": pl.Series(["2020-01-01"] * 2).str.to_date()}), "days since a date"),
        ({"x": [1.0, np.inf]}, r"1 of 2 rows are infinite \(first: row 1\)"),
        ({"x": [1.0]}, "one entry for each of the 2 rows"),
        ({"x": ["a", 1]}, "values of type int and str"),
        ({"x": [[1], [2]]}, "one entry for each"),
        ({"x": [1j, 2j]}, "numbers, booleans or text"),
        ({}, "no columns"),
        (pl.LazyFrame({"x": [1, 2]}), "lazy frame"),
        (pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "several columns|duplicate|unique"),
        (np.zeros((2, 2, 2)), "one or two dimensions"),
    ],
)
def test_what_is_no_feature_is_refused(X, words):
    with pytest.raises((InvalidPredictions, ValueError), match=words):
        coded(X, 2)


def test_a_feature_of_another_kind_is_refused():
    feature = Feature("x", "number", cuts=(1.0,))
    with pytest.raises(InvalidPredictions, match="'x' must hold numbers, as in the fit, but holds text"):
        feature.codes(Column("category", np.empty(0), ["a"]))
    with pytest.raises(ValueError, match="unknown kind"):
        Feature.from_dict({"name": "x", "kind": "?", "cuts": [], "values": []})
    with pytest.raises(ValueError, match="not those of a fit"):
        Feature.from_dict({"name": "x", "kind": "number", "cuts": [2.0, 1.0], "values": []})


def test_examples_of_coded_and_readable():
    features, codes = coded({"age": [30, 40, None], "who": ["a", "b", "a"]}, 3)
    assert (features[0].cuts, codes[0].tolist(), features[0].words(1, 1)) == ((40.0,), [0, 1, 2], "age >= 40")
    assert (readable(0.1234, 0.1391), readable(17.2, 23.0), readable(4.0, 4.0)) == (0.13, 20.0, 4.0)
