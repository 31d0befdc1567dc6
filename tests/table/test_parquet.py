"""Files of tables: those of older releases are still read."""

import datetime
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.scale import GaussianColumns, bin_table, bin_tables
from calibrant.table import Labelled, Spread, Unlabeled, load_tables, save_tables
from calibrant.table import parquet as storage
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
    with pytest.raises(cal.InvalidFile, match=r"not a table that BinTable\.save wrote"):
        cal.BinTable.load(path)
    path.write_bytes(b"not Parquet at all")
    with pytest.raises(cal.InvalidFile, match="no readable Parquet file"):
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
    with pytest.raises(cal.InvalidFile, match=r"read it with BinTable\.load"):
        load_tables(path)
    save_tables({"a": table}, path)
    with pytest.raises(cal.InvalidFile, match=r"read it with calibrant\.table\.load_tables"):
        cal.BinTable.load(path)


def test_a_newer_schema_is_refused(tmp_path, monkeypatch):
    table = next(tables_of_all_kinds())
    monkeypatch.setattr(storage, "SCHEMA_VERSION", 99)
    table.save(tmp_path / "new.parquet")
    monkeypatch.undo()
    with pytest.raises(cal.InvalidFile, match="layout version 99"):
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
    with pytest.raises(cal.InvalidFile, match=r"table\.parquet"):
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
    with pytest.raises(cal.InvalidFile, match=r"count|observed"):
        cal.BinTable.load(path)


def test_deep_or_broken_metadata_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    next(tables_of_all_kinds()).save(path)
    for text in (b"[" * 100_000, b"no JSON", b"[1]", b"null"):
        pq.write_table(pq.read_table(path).replace_schema_metadata({b"calibrant": text}), path)
        with pytest.raises(cal.InvalidFile):
            cal.BinTable.load(path)


def test_groups_out_of_order_or_twice_are_refused(tmp_path):
    path, table = tmp_path / "tables.parquet", next(tables_of_all_kinds())
    save_tables({"a": table, "b": table}, path)
    rewritten(path, columns=lambda data: data.set_column(0, "group", pa.array([1] * 5 + [0] * 5, pa.int32())))
    with pytest.raises(cal.InvalidFile, match="group must rise"):
        load_tables(path)
    save_tables({"a": table, "b": table}, path)
    rewritten(path, lambda about: about["tables"][1].update(group=["a"]))
    with pytest.raises(cal.InvalidFile, match="'a' occurs twice"):
        load_tables(path)
    save_tables({float("nan"): table, float("inf"): table}, path)
    assert str(list(load_tables(path))) == "[nan, inf]"
