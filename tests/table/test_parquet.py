"""Files of tables: those of older releases are still read, and impossible ones are refused."""

import datetime
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.numerics.rows import SUMS
from calibrant.scale import GaussianColumns, bin_table, bin_tables
from calibrant.table import Distinct, HybridGrid, Labelled, LogGrid, Spread, Unlabeled, load_tables, save_tables
from calibrant.table import parquet as storage
from calibrant.table.parquet import require_possible
from tests.reference.make_table_version_1 import tables
from tests.scale.logs import assert_same_table, make_log

OLD = Path(__file__).parents[1] / "reference" / "table_version_1.parquet"


@pytest.mark.parametrize("name", ["labelled", "spread", "prior", "frequency"])
def test_files_of_version_1_are_read_with_the_task_their_fields_said(name):
    assert_same_table(load_tables(OLD)[name], tables()[name], rtol=0)


def test_the_tasks_of_version_1():
    assert [table.task for table in load_tables(OLD).values()] == [
        Labelled(),
        Spread(),
        Unlabeled(0.6),
        Unlabeled(None, label_frequency=0.8, nested=True),
    ]


def test_the_task_is_saved(tmp_path):
    for name, table in tables().items():
        table.save(tmp_path / name)
        assert cal.BinTable.load(tmp_path / name).task == table.task


def test_tables_of_different_tasks_are_not_added():
    labelled, prior = tables()["labelled"], tables()["prior"]
    with pytest.raises(ValueError, match="equal task"):
        labelled + prior
    both = prior + prior
    assert both.task == prior.task
    np.testing.assert_allclose(both.observed_mean, prior.observed_mean)


def tables_of_all_kinds():
    log = make_log(300)
    data = cal.Binary(log.y, log.p, weight=log.w)
    yield from (
        cal.BinTable.of(data, cut) for cut in (cal.EqualMass(5), cal.table.Distinct(), cal.table.HybridGrid(99, 20.0))
    )
    yield cal.BinTable.of(cal.Gaussian(log.z, log.mu, log.sigma), cal.table.LogGrid())
    yield cal.BinTable.of(cal.PositiveUnlabeled(log.p[:50], log.p[50:], prior=0.3), cal.table.HybridGrid())
    yield bin_table(log.assign(p=log.p.where(log.day > 0)), y_true="y", y_prob="p", max_invalid=1, exact=True)


@pytest.mark.parametrize("table", list(tables_of_all_kinds()), ids=str)
def test_a_saved_table_comes_back_to_the_last_bit(table, tmp_path):
    table.save(tmp_path / "table.parquet")
    loaded = cal.BinTable.load(tmp_path / "table.parquet")
    assert_same_table(loaded, table, rtol=0)
    assert (loaded.invalid, loaded.task) == (table.invalid, table.task)
    assert os.listdir(tmp_path) == ["table.parquet"]


def test_a_nightly_job_adds_a_day_without_reading_yesterday(tmp_path):
    log, path = make_log(3000), tmp_path / "all.parquet"
    for day, rows in log.groupby("day"):
        today = bin_table(rows, y_true="y", y_prob="p")
        (today + cal.BinTable.load(path) if day else today).save(path)
    expected = bin_table(log, y_true="y", y_prob="p")
    assert_same_table(cal.BinTable.load(path), expected)
    with pytest.raises(ValueError, match="cut alike"):
        expected + bin_table(log, y_true="y", y_prob="p", grid=cal.table.HybridGrid(64))
    with pytest.raises(ValueError, match="cut alike"):
        expected + bin_table(log, y_true="z", task=GaussianColumns("mu", "sigma"))


def test_other_files_are_not_taken_for_tables(tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"p": [0.5]}), path)
    with pytest.raises(cal.data.InvalidFile, match=r"not a table that BinTable\.save wrote"):
        cal.BinTable.load(path)
    path.write_bytes(b"not Parquet at all")
    with pytest.raises(cal.data.InvalidFile, match="not a readable Parquet file"):
        cal.BinTable.load(path)
    with pytest.raises(FileNotFoundError):
        cal.BinTable.load(tmp_path / "nowhere.parquet")


def test_the_tables_of_all_groups_are_saved_in_one_file_and_come_back(tmp_path):
    log, path = make_log(600), tmp_path / "tables.parquet"
    log["date"] = np.array([datetime.date(2026, 11, day + 1) for day in log.day])
    for by in ("country", "day", ["country", "day"], "date"):
        tables = bin_tables(log.assign(p=log.p.where(log.index > 3)), y_true="y", y_prob="p", by=by, max_invalid=1)
        save_tables(tables, path)
        loaded = load_tables(path)
        assert list(loaded) == list(tables)
        assert [type(group) for group in loaded] == [type(group) for group in tables]
        for group, table in tables.items():
            assert_same_table(loaded[group], table, rtol=0)
            assert loaded[group].invalid == table.invalid
    assert os.listdir(tmp_path) == ["tables.parquet"]


def test_folds_within_groups_and_tables_of_different_kinds_are_kept(tmp_path):
    log, path = make_log(300), tmp_path / "tables.parquet"
    tables = bin_tables(log, y_true="y", y_prob="p", by="country", fold="day")
    nested = {group: {day: tables[group, day] for day in range(3)} for group in ("at", "de")}
    for found in (tables, nested):
        save_tables(found, path)
        assert list(load_tables(path)) == list(found)
    assert_same_table(load_tables(path)["at"][1], tables["at", 1], rtol=0)
    kinds = dict(zip([None, True, 2.5, ("a", None), np.int64(7), ""], tables_of_all_kinds(), strict=True))
    save_tables(kinds, path)
    for place, table in load_tables(path).items():
        assert_same_table(table, kinds[place], rtol=0)
        assert table.task == kinds[place].task


def test_a_thousand_groups_are_one_file(tmp_path):
    table = cal.BinTable.of(cal.Binary([0, 1], [0.2, 0.7]), cal.table.HybridGrid(2**12))
    save_tables(dict.fromkeys(range(1000), table), tmp_path / "tables.parquet")
    loaded = load_tables(tmp_path / "tables.parquet")
    assert list(loaded) == list(range(1000))
    assert_same_table(loaded[999], table, rtol=0)


def test_what_is_no_mapping_of_tables_is_refused_and_nothing_is_written(tmp_path):
    path, table = tmp_path / "tables.parquet", next(tables_of_all_kinds())
    for wrong, error, words in (
        ({}, ValueError, "nothing to save"),
        (table, TypeError, "must map groups to tables"),
        ({"a": 3}, TypeError, "must map groups to tables"),
        ({b"a": table}, TypeError, "rename it first"),
    ):
        with pytest.raises(error, match=words):
            save_tables(wrong, path)
    assert os.listdir(tmp_path) == []
    table.save(path)
    with pytest.raises(cal.data.InvalidFile, match=r"read it with BinTable\.load"):
        load_tables(path)
    save_tables({"a": table}, path)
    with pytest.raises(cal.data.InvalidFile, match=r"read it with calibrant\.table\.load_tables"):
        cal.BinTable.load(path)


def test_a_newer_schema_is_refused(tmp_path, monkeypatch):
    table = next(tables_of_all_kinds())
    monkeypatch.setattr(storage, "SCHEMA_VERSION", 99)
    table.save(tmp_path / "new.parquet")
    monkeypatch.undo()
    with pytest.raises(cal.data.InvalidFile, match="layout version 99"):
        cal.BinTable.load(tmp_path / "new.parquet")


def rewritten(path, change=None, columns=None):
    """The file with other metadata, or with other columns."""
    data = pq.read_table(path)
    about = json.loads(data.schema.metadata[b"calibrant"])
    if change is not None:
        change(about)
    data = data if columns is None else columns(data)
    pq.write_table(data.replace_schema_metadata({b"calibrant": json.dumps(about).encode()}), path)


CHANGES = {
    "no cut": lambda about: about.pop("cut"),
    "an unknown cut": lambda about: about["cut"].update(kind="os.system"),
    "an unknown field": lambda about: about["cut"].update(colour="red"),
    "a cut of no kind": lambda about: about.update(cut=7),
    "no task": lambda about: about.pop("task"),
    "an unknown task": lambda about: about["task"].update(kind="Popen"),
    "invalid rows of no kind": lambda about: about.update(invalid=[1]),
    **{
        f"version {version!r}": lambda about, version=version: about.update(schema_version=version)
        for version in (0, -5, True, 99, "2", None)
    },
}


@pytest.mark.parametrize("case", CHANGES)
def test_other_words_than_save_writes_are_refused(case, tmp_path):
    path = tmp_path / "table.parquet"
    next(tables_of_all_kinds()).save(path)
    rewritten(path, CHANGES[case])
    with pytest.raises(cal.data.InvalidFile, match=r"table\.parquet"):
        cal.BinTable.load(path)


COLUMNS = {
    "text": lambda data: data.set_column(3, "count", pa.array(["a"] * len(data))),
    "missing values": lambda data: data.set_column(3, "count", pa.array([None] * len(data), pa.float64())),
    "lacking": lambda data: data.drop_columns(["observed"]),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_other_columns_than_save_writes_are_refused(case, tmp_path):
    path = tmp_path / "table.parquet"
    next(tables_of_all_kinds()).save(path)
    rewritten(path, columns=COLUMNS[case])
    with pytest.raises(cal.data.InvalidFile, match=r"count|observed"):
        cal.BinTable.load(path)


def test_deep_or_broken_metadata_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    next(tables_of_all_kinds()).save(path)
    for text in (b"[" * 100_000, b"no JSON", b"[1]", b"null"):
        pq.write_table(pq.read_table(path).replace_schema_metadata({b"calibrant": text}), path)
        with pytest.raises(cal.data.InvalidFile):
            cal.BinTable.load(path)


def test_groups_out_of_order_or_twice_are_refused(tmp_path):
    path, table = tmp_path / "tables.parquet", next(tables_of_all_kinds())
    save_tables({"a": table, "b": table}, path)
    rewritten(path, columns=lambda data: data.set_column(0, "group", pa.array([1] * 5 + [0] * 5, pa.int32())))
    with pytest.raises(cal.data.InvalidFile, match="group must rise"):
        load_tables(path)
    save_tables({"a": table, "b": table}, path)
    rewritten(path, lambda about: about["tables"][1].update(group=["a"]))
    with pytest.raises(cal.data.InvalidFile, match="'a' occurs twice"):
        load_tables(path)
    save_tables({float("nan"): table, float("inf"): table}, path)
    assert str(list(load_tables(path))) == "[nan, inf]"


GRIDS = [Distinct(), HybridGrid(), HybridGrid(2**8, equal_width=15), cal.EqualMass(7), cal.EqualWidth(7)]


def data(n, seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.3, 0.3, n).round(rng.integers(1, 17))
    y = (rng.random(n) < p).astype(int)
    weight = rng.lognormal(0, 3, n) * 10.0 ** rng.integers(-100, 100)
    yield cal.Binary(y, p)
    yield cal.Binary(y, p.astype(np.float32))
    yield cal.Binary(y, p, weight=weight)
    yield cal.PositiveUnlabeled(p[: n // 3 + 1], p, prior=0.3)
    if 0 < y.sum() < n:
        yield cal.PositiveUnlabeled.from_labels(y, p, scenario="single-sample", prior=0.9)


@pytest.mark.parametrize("n", [1, 3, 400])
@pytest.mark.parametrize("grid", GRIDS, ids=repr)
def test_tables_of_rows_are_possible_and_so_are_their_parts_and_sums(n, grid):
    for seed in range(3):
        for one in data(n, seed):
            table = cal.BinTable.of(one, grid)
            for made in (table, table.filled(), table + table, table.in_rows()):
                require_possible(made)
            if table.fine and n > 3:
                require_possible(table.coarsen(cal.EqualMass(9)))
                require_possible(table.coarsen(cal.EqualWidth(9)))


def test_tables_of_spreads_and_of_engines_are_possible():
    log = make_log(700)
    rng = np.random.default_rng(0)
    for unit in (1e-60, 1.0, 1e60):
        spread = cal.Gaussian(unit * log.z, unit * log.mu, unit * log.sigma, weight=rng.random(700))
        require_possible(cal.BinTable.of(spread, LogGrid()))
        require_possible(cal.BinTable.of(spread, cal.EqualMass(9)))
    require_possible(cal.BinTable.of(cal.Quantiles(log.z, [0.1, 0.9], np.sort(log[["mu", "z"]])), cal.EqualMass(2)))
    for exact in (True, cal.EqualWidth(15)):
        require_possible(bin_table(log, y_true="y", y_prob="p", weight="w", exact=exact))
    for table in bin_tables(log, y_true="y", y_prob="p", by="country", exact=True).values():
        require_possible(table)


def changed(table, column, value, place=0):
    sums = table.sums.copy()
    sums[SUMS.index(column), place] = value
    return replace(table, sums=sums)


TABLE = cal.BinTable.of(cal.Binary([0, 1, 1, 0], [0.2, 0.2, 0.7, 0.9]), HybridGrid())
PU = cal.BinTable.of(cal.PositiveUnlabeled([0.2, 0.6], [0.2, 0.6, 0.8], prior=0.4), HybridGrid())
BINS = cal.BinTable.of(cal.Binary([0, 1, 1, 0], [0.2, 0.2, 0.7, 0.9]), cal.EqualWidth(4))
IMPOSSIBLE = {
    "a negative count": (changed(TABLE, "count", -2.0), "count must be finite and not negative, but 1 of 3 rows"),
    "half a row": (changed(TABLE, "count", 1.5), "count must be whole"),
    "NaN": (changed(TABLE, "observed", np.nan), "observed must be finite"),
    "infinite": (changed(TABLE, "weight", np.inf), "weight must be finite"),
    "seven times the prediction": (changed(TABLE, "predicted", 7 * 0.4), "predicted"),
    "more events than rows": (changed(TABLE, "observed", 9.0), "observed must not exceed the weight"),
    "more weight than rows can have": (changed(TABLE, "weight", 9.0), "weight must fit"),
    "no squares of weights": (changed(TABLE, "weight_squares", 0.0), "weight must fit"),
    "squares of predictions": (changed(TABLE, "predicted_squares", 0.0), "predicted_squares must fit"),
    "NaN squares of a fine table": (changed(TABLE, "predicted_squares", np.nan), "predicted_squares must not"),
    "too large a product": (changed(TABLE, "product", 5.0), "product must not exceed"),
    "squares of outcomes": (changed(TABLE, "observed_squares", 5.0), "observed_squares must fit"),
    "unsorted": (replace(TABLE, low=TABLE.low[::-1], high=TABLE.high[::-1]), "low must rise|between low and high"),
    "bounds exchanged": (replace(TABLE, low=TABLE.high + 0.01), "low must not be above high"),
    "scores above 1": (replace(TABLE, low=TABLE.low + 1, high=TABLE.high + 1), r"low must lie in \[0, 1\]"),
    "unknown cells": (replace(TABLE, key=TABLE.key + 2**16), "key must be the number of a cell"),
    "broken keys": (replace(TABLE, key=TABLE.key + 0.5), "key must be whole"),
    "unknown bins": (replace(BINS, key=BINS.key + 1), "key must be the number of a bin"),
    "the same bin twice": (replace(BINS, key=0 * BINS.key), "key must rise"),
    "other edges": (replace(BINS, low=BINS.low * 0.9), "low must be an edge"),
    "a prior of 5": (replace(PU, task=Unlabeled(5.0)), r"prior must lie in \(0, 1\], got 5.0"),
    "a prior of 0": (replace(PU, task=Unlabeled(0.0)), "prior must lie"),
    "a prior of text": (replace(PU, task=Unlabeled("half")), "prior must lie"),
    "a label frequency of 2": (replace(PU, task=Unlabeled(None, 2.0)), "label_frequency must lie"),
    "nested what": (replace(PU, task=Unlabeled(0.4, nested=3)), "nested must be true or false"),
    "negative invalid rows": (replace(TABLE, invalid={"missing": -1}), "invalid"),
    "half an invalid row": (replace(TABLE, invalid={"missing": 0.5}), "invalid"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_no_rows_can_give_is_refused(case):
    table, words = IMPOSSIBLE[case]
    with pytest.raises(ValueError, match=words):
        require_possible(table)


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_a_saved_table_that_is_impossible_is_an_invalid_file(case, tmp_path):
    IMPOSSIBLE[case][0].save(tmp_path / "table.parquet")
    with pytest.raises(cal.data.InvalidFile, match=r"table\.parquet is not a valid table"):
        cal.BinTable.load(tmp_path / "table.parquet")
