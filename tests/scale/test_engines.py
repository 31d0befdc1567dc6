"""The same keys, counts and sums whatever engine holds the rows."""

import duckdb
import ibis
import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.scale import GaussianColumns, OneVsRestColumns, TopLabelColumns, UnlabeledColumns, bin_table, bin_tables
from tests.scale.logs import assert_same_table, make_log

# Ibis still calls a method that DuckDB 2 calls deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_(arrow_table|record_batch|arrow_reader):DeprecationWarning")
GRID = cal.table.HybridGrid()
ANIMALS = ("cat", "cow", "dog")


def as_file(log, folder, ending):
    path = folder / f"log.{ending}"
    if ending == "parquet":
        log.to_parquet(path, index=False)
    elif ending == "csv":
        log.to_csv(path, index=False)
    else:
        log.to_json(path, orient="records", lines=True, double_precision=15)
    return str(path)


@pytest.fixture(
    scope="module", params=["pandas", "polars", "polars lazy", "pyarrow", "duckdb", "ibis", "parquet", "csv", "list"]
)
def source(request, log, tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    if request.param in ("parquet", "csv"):
        yield as_file(log, folder, request.param)
    elif request.param == "duckdb":
        with duckdb.connect() as connection:
            yield connection.from_df(log)
    elif request.param == "ibis":
        connection = ibis.duckdb.connect()
        yield connection.read_parquet(as_file(log, folder, "parquet"))
        connection.disconnect()
    else:
        polars = pl.from_pandas(log)
        yield {
            "pandas": log,
            "polars": polars,
            "polars lazy": polars.lazy(),
            "pyarrow": pa.Table.from_pandas(log),
            "list": [polars[:1000], log[1000:1001], as_file(log[1001:], folder, "parquet")],
        }[request.param]


def test_the_table_of_events_is_that_of_the_rows_in_memory(source, log):
    expected = cal.BinTable.of(cal.Binary(log.y, log.p), GRID)
    found = bin_table(source, y_true="y", y_prob="p")
    assert_same_table(found, expected)
    assert found.invalid == {}
    assert cal.ece(found) == pytest.approx(float(cal.ece(expected)), abs=1e-15)


def test_weights_are_summed_as_in_memory(source, log):
    expected = cal.BinTable.of(cal.Binary(log.y, log.p, weight=log.w), GRID)
    assert_same_table(bin_table(source, y_true="y", y_prob="p", weight="w"), expected)


def test_the_engine_finds_the_top_label_the_first_of_equal_ones(source, log):
    data = cal.Multiclass(log.animal, log[list(ANIMALS)].to_numpy(), classes=ANIMALS)
    found = bin_table(source, y_true="animal", y_prob=ANIMALS, task=TopLabelColumns(ANIMALS))
    assert_same_table(found, cal.BinTable.of(data.top_label(), GRID))


def test_the_task_of_a_normal_distribution_is_cut_by_sigma(source, log):
    expected = cal.BinTable.of(cal.Gaussian(log.z, log.mu, log.sigma), cal.table.LogGrid())
    assert_same_table(bin_table(source, y_true="z", task=GaussianColumns(mean="mu", std="sigma")), expected, rtol=1e-11)


def test_positive_unlabeled_rows_are_told_apart_by_their_label(source, log):
    positive = (log.animal == "cat").to_numpy()
    unlabeled = (log.animal == "cow").to_numpy()
    expected = cal.BinTable.of(cal.PositiveUnlabeled(log.p[positive], log.p[unlabeled], prior=0.3), GRID)
    task = UnlabeledColumns(prior=0.3, positive="cat", unlabeled="cow")
    where = nw.col("animal") != "dog"
    assert_same_table(bin_table(source, y_true="animal", y_prob="p", task=task, where=where), expected)


@pytest.mark.parametrize(("known", "weight"), [({"prior": 0.6}, None), ({"label_frequency": 0.9}, "w")])
def test_one_sample_of_which_some_positives_are_labelled(source, log, known, weight):
    some = log[log.animal != "dog"]
    weights = None if weight is None else some.w
    scenario = {"scenario": "single-sample", **known}
    data = cal.PositiveUnlabeled.from_labels(some.animal == "cat", some.p, weight=weights, **scenario)
    task = UnlabeledColumns(positive="cat", unlabeled="cow", **scenario)
    where = nw.col("animal") != "dog"
    found = bin_table(source, y_true="animal", y_prob="p", weight=weight, task=task, where=where)
    expected = cal.BinTable.of(data, GRID)
    assert found.task.nested
    np.testing.assert_allclose(cal.pu.Gaps.of(found).prior, data.prior, rtol=1e-12)
    assert_same_table(found, expected)


def test_the_scenario_of_positive_unlabeled_data_must_make_sense(log):
    for wrong in (
        {},
        {"prior": 0.5, "label_frequency": 0.5},
        {"label_frequency": 0.5},
        {"prior": 0.5, "scenario": "x"},
    ):
        with pytest.raises(cal.InvalidPredictions, match="scenario"):
            UnlabeledColumns(**wrong)
    task = UnlabeledColumns(positive="cat", unlabeled="cow", scenario="single-sample", label_frequency=0.1)
    with pytest.raises(cal.InvalidPredictions, match="more than all rows would be positive"):
        bin_table(log[log.animal != "dog"], y_true="animal", y_prob="p", task=task)


def test_groups_and_folds_give_one_table_each(source, log):
    found = bin_tables(source, y_true="y", y_prob="p", by="country", fold="day")
    assert list(found) == [(country, day) for country in ("at", "de") for day in range(3)]
    for (country, day), table in found.items():
        rows = log[(log.country == country) & (log.day == day)]
        assert_same_table(table, cal.BinTable.of(cal.Binary(rows.y, rows.p), GRID))


def test_exact_bins_equal_those_in_memory(source, log):
    data = cal.Binary(log.y, log.p)
    for bins in (cal.EqualMass(15), cal.EqualWidth(15), cal.EqualMass(7), cal.Edges([0, 0.2, 0.5, 0.99, 1])):
        table = bin_table(source, y_true="y", y_prob="p", exact=bins)
        np.testing.assert_allclose(cal.ece(table, bins=bins), cal.ece(data, bins=bins), atol=1e-12)
        np.testing.assert_array_equal(table.coarsen(bins).count, cal.BinTable.of(data, bins).count)


def test_one_versus_rest_gives_a_table_per_class(log):
    data = cal.Multiclass(log.animal, log[list(ANIMALS)].to_numpy(), classes=ANIMALS)
    found = bin_tables(log, y_true="animal", y_prob=ANIMALS, task=OneVsRestColumns(ANIMALS), by=["country", "day"])
    assert len(found) == 6 * len(ANIMALS)
    whole = bin_tables(log, y_true="animal", y_prob=ANIMALS, task=OneVsRestColumns(ANIMALS))
    for name, binary in data.one_vs_rest().items():
        assert_same_table(whole[name], cal.BinTable.of(binary, GRID))
        parts = [table for (*_, label), table in found.items() if label == name]
        assert_same_table(sum(parts[1:], parts[0]), whole[name])


def test_labels_may_be_column_numbers(log):
    numbered = log.assign(code=log.animal.map({name: k for k, name in enumerate(ANIMALS)}))
    by_number = bin_table(numbered, y_true="code", y_prob=ANIMALS, task=TopLabelColumns())
    assert_same_table(by_number, bin_table(log, y_true="animal", y_prob=ANIMALS, task=TopLabelColumns(ANIMALS)))


def test_json_lines_and_folders_and_patterns_are_read(log, tmp_path):
    expected = bin_table(log.round(6), y_true="y", y_prob="p")
    for day, rows in log.round(6).groupby("day"):
        as_file(rows, tmp_path, "jsonl")
        (tmp_path / "log.jsonl").rename(tmp_path / f"{day}.jsonl")
    for source in (tmp_path, str(tmp_path / "*.jsonl"), sorted(tmp_path.iterdir())):
        assert_same_table(bin_table(source, y_true="y", y_prob="p"), expected)


def test_files_can_be_filtered_by_sql_and_by_expression(log, tmp_path):
    path = as_file(log, tmp_path, "parquet")
    expected = bin_table(log[log.country == "at"], y_true="y", y_prob="p")
    assert_same_table(bin_table(path, y_true="y", y_prob="p", where="country = 'at'"), expected)
    assert_same_table(bin_table(path, y_true="y", y_prob="p", where=nw.col("country") == "at"), expected)
    with pytest.raises(TypeError, match="Narwhals expression"):
        bin_table(log, y_true="y", y_prob="p", where="country = 'at'")


def test_float32_and_boolean_and_integer_columns_are_taken_as_they_are(tmp_path):
    p, y = np.array([0, 1, 0.25, 0.75], np.float32), np.array([False, True, False, True])
    expected = cal.BinTable.of(cal.Binary(y, p), GRID)
    path = as_file(make_log(4)[[]].assign(p=p, y=y), tmp_path, "parquet")
    for source in (path, pl.DataFrame({"p": p, "y": y}), pa.table({"p": p, "y": y})):
        assert_same_table(bin_table(source, y_true="y", y_prob="p"), expected)
    whole = pl.DataFrame({"p": [0, 1], "y": [0.0, 1.0]})
    assert bin_table(whole, y_true="y", y_prob="p").n == 2


def test_a_thousand_groups_at_once_are_each_right():
    rng = np.random.default_rng(5)
    p = rng.random(60_000).astype(np.float32)
    frame = pl.DataFrame({"p": p, "y": (rng.random(len(p)) < p**2).astype(np.int8), "g": np.arange(len(p)) % 1000})
    found = bin_tables(frame.lazy(), y_true="y", y_prob="p", by="g", grid=cal.table.HybridGrid(2**12))
    assert list(found) == list(range(1000))
    for group in (0, 1, 500, 999):
        rows = frame.filter(pl.col("g") == group)
        data = cal.Binary(rows["y"], rows["p"])
        assert_same_table(found[group], cal.BinTable.of(data, cal.table.HybridGrid(2**12)))


def test_a_column_may_be_called_anything(log, tmp_path):
    name = 'p"; drop table x --'
    odd = log.rename(columns={"p": name, "y": "y'`"})
    expected = bin_table(log, y_true="y", y_prob="p")
    with duckdb.connect() as connection:
        for source in (odd, pl.from_pandas(odd), as_file(odd, tmp_path, "parquet"), connection.from_df(odd)):
            assert_same_table(bin_table(source, y_true="y'`", y_prob=name), expected)
