"""Tables that are kept: saved, added day by day, and grown from a stream."""

import datetime
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant._atomic_write import replacing
from calibrant.scale import GaussianColumns, StreamingTable, bin_table, bin_tables
from calibrant.scale.batch_sums import first_of_cells
from calibrant.table import load_tables, save_tables
from calibrant.table import parquet as storage
from tests.scale.logs import assert_same_table, make_log


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
    with pytest.raises(cal.InvalidPredictions, match=r"not a table that BinTable\.save wrote"):
        cal.BinTable.load(path)
    path.write_bytes(b"not Parquet at all")
    with pytest.raises(cal.InvalidPredictions, match="no readable Parquet file"):
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
    with pytest.raises(cal.InvalidPredictions, match=r"read it with BinTable\.load"):
        load_tables(path)
    save_tables({"a": table}, path)
    with pytest.raises(cal.InvalidPredictions, match=r"read it with calibrant\.table\.load_tables"):
        cal.BinTable.load(path)


def test_a_newer_schema_is_refused(tmp_path, monkeypatch):
    table = next(tables_of_all_kinds())
    monkeypatch.setattr(storage, "SCHEMA_VERSION", 99)
    table.save(tmp_path / "new.parquet")
    monkeypatch.undo()
    with pytest.raises(cal.InvalidPredictions, match="schema version 99"):
        cal.BinTable.load(tmp_path / "new.parquet")


def test_a_write_that_is_interrupted_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "table.parquet"
    path.write_text("old")

    def interrupted():
        with replacing(path) as place:
            place.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.parquet"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("batch", [1, 700, 70_000, 200_000])
def test_a_stream_gives_the_table_of_all_its_rows(dtype, batch):
    rng = np.random.default_rng(1)
    size = min(200_000, 300 * batch)
    p = rng.beta(0.5, 0.5, size).astype(dtype)
    y = rng.random(size) < p
    stream = StreamingTable()
    for start in range(0, size, batch):
        stream.update(y[start : start + batch], p[start : start + batch])
    assert_same_table(stream.table(), cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid()))


def test_a_stream_takes_single_and_double_precision_weights_and_tables():
    log = make_log(500)
    stream, single = StreamingTable(), log.p.to_numpy(np.float32)
    stream.update(log.y, log.p)
    stream.update(log.y, single)
    stream.update(log.y, log.p, weight=log.w)
    stream.add(bin_table(log, y_true="y", y_prob="p"))
    parts = [cal.Binary(log.y, log.p), cal.Binary(log.y, single), cal.Binary(log.y, log.p, weight=log.w)]
    tables = [cal.BinTable.of(part, cal.table.HybridGrid()) for part in (*parts, parts[0])]
    assert_same_table(stream.table(), sum(tables[1:], tables[0]))
    assert repr(stream).startswith("<StreamingTable, n=2_000")


def test_a_bad_row_leaves_the_stream_as_it_was():
    stream = StreamingTable()
    stream.update([0, 1], [0.2, 0.7])
    with pytest.raises(cal.InvalidPredictions):
        stream.update([0, 1], [0.2, 1.7])
    assert stream.table().n == 2


def test_many_threads_may_feed_one_stream_and_read_it():
    log, stream = make_log(2000), StreamingTable()
    y, p = log.y.to_numpy(), log.p.to_numpy()
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(stream.update, y[k::40], p[k::40]) for k in range(40)]
        reads = [pool.submit(stream.table) for _ in range(10)]
        assert all(job.exception() is None for job in jobs + reads)
    assert_same_table(stream.table(), bin_table(log, y_true="y", y_prob="p"))
    other = StreamingTable()
    other.update(y, p)
    assert (stream + other).n == 4000


def test_memory_does_not_grow_with_the_rows():
    stream = StreamingTable(grid=cal.table.HybridGrid(2**10))
    sizes = set()
    for seed in range(4):
        p = np.random.default_rng(seed).random(100_000)
        stream.update(p < 0.5, p)
        (tally,) = stream._batches.values()
        sizes.add(sum(value.nbytes for value in vars(tally).values() if isinstance(value, np.ndarray)))
    assert len(sizes) == 1
    assert max(sizes) < 2**10 * 128 * 8 * 1.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "grid",
    [
        cal.table.HybridGrid(),
        cal.table.HybridGrid(10, 1.0),
        cal.table.HybridGrid(1),
        cal.table.HybridGrid(64, equal_width=15),
    ],
    ids=str,
)
def test_a_stream_knows_the_first_score_of_every_cell(grid, dtype):
    cell, bits = first_of_cells(grid, np.dtype(dtype))
    first = bits.view(dtype)
    assert (first[0], cell[0]) == (0, 0)
    assert (np.diff(cell) > 0).all()
    np.testing.assert_array_equal(grid.index(np.nextafter(first[1:], dtype(-1))), cell[:-1])
    assert grid.index(np.ones(1, dtype))[0] == cell[-1]


def test_a_stream_takes_the_ends_of_the_scale_ties_and_negative_zero():
    p = np.array([0.0, -0.0, 1.0, 1.0, 5e-324, 1 - 2**-53, 0.5, 0.5, 1 / 15, 2 / 15])
    y = np.array([0, 1, 1, 0, 0, 1, 1, 0, 1, 0])
    for dtype in (np.float32, np.float64):
        for grid in (cal.table.HybridGrid(), cal.table.HybridGrid(8, equal_width=15)):
            stream = StreamingTable(grid=grid)
            for _ in range(3):
                stream.update(y, p.astype(dtype))
                stream.table()
            once = cal.BinTable.of(cal.Binary(y, p.astype(dtype)), grid)
            assert_same_table(stream.table(), once + once + once)


def test_more_rows_than_the_buffer_holds_are_absorbed_on_the_way():
    rng = np.random.default_rng(2)
    p = rng.beta(0.3, 0.6, 300_000)[::2]  # not contiguous
    y = rng.random(len(p)) < p
    stream = StreamingTable(grid=cal.table.HybridGrid(2**10))
    for start in range(0, len(p), 70_001):
        stream.update(y[start : start + 70_001], p[start : start + 70_001])
    assert_same_table(stream.table(), cal.BinTable.of(cal.Binary(y, p), cal.table.HybridGrid(2**10)))


def test_an_empty_stream_gives_an_empty_table():
    assert StreamingTable().table().n == 0


def test_a_stream_goes_on_from_its_checkpoint(tmp_path):
    log, path = make_log(1000), tmp_path / "stream.parquet"
    first = StreamingTable(grid=cal.table.HybridGrid(2**12))
    first.update(log.y[:600], log.p[:600])
    first.checkpoint(path)
    second = StreamingTable.restore(path)
    second.update(log.y[600:], log.p[600:])
    assert_same_table(second.table(), bin_table(log, y_true="y", y_prob="p", grid=cal.table.HybridGrid(2**12)))
    cal.BinTable.of(cal.Binary([0, 1], [0.1, 0.2]), cal.table.Distinct()).save(path)
    with pytest.raises(ValueError, match="goes on from a table"):
        StreamingTable.restore(path)


def test_a_kill_at_any_moment_leaves_a_whole_checkpoint(tmp_path):
    path = tmp_path / "stream.parquet"
    code = (
        "import sys, numpy as np\nfrom calibrant.scale import StreamingTable\n"
        "stream = StreamingTable()\np = np.linspace(0, 1, 1000)\n"
        "while True:\n    stream.update(p > 0.5, p)\n    stream.checkpoint(sys.argv[1])\n    print('.', flush=True)\n"
    )
    seen = 0
    for wait in (0.0, 0.017):
        with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
        table = cal.BinTable.load(path)
        assert table.n % 1000 == 0
        seen += table.n
    assert seen >= 2000
