"""A table that grows from a stream, whose batches may have any shape."""

import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import calibrant as cal
from calibrant.scale import StreamingTable, bin_table
from calibrant.scale.streaming import batch_rows
from tests.scale.logs import assert_same_table, make_log


@pytest.mark.no_cover
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
    with pytest.raises(ValueError, match="restored from a table"):
        StreamingTable.restore(path)


@pytest.mark.no_cover
def test_a_kill_at_any_moment_leaves_a_whole_checkpoint(tmp_path):
    path = tmp_path / "stream.parquet"
    code = (
        "import sys, numpy as np\nfrom calibrant.scale import StreamingTable\n"
        "import os\nold = os.path.exists(sys.argv[1])\n"
        "stream = StreamingTable.restore(sys.argv[1]) if old else StreamingTable()\np = np.linspace(0, 1, 1000)\n"
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


def filled(rows=3):
    stream = StreamingTable(grid=cal.table.HybridGrid(2**10))
    stream.update([0, 1, 1][:rows], [0.2, 0.7, 0.9][:rows])
    return stream


def test_a_pickled_stream_is_a_copy_that_goes_on():
    stream = filled()
    copy = pickle.loads(pickle.dumps(stream))
    assert_same_table(copy.table(), stream.table())
    copy.update(1, 0.5)
    assert (copy.table().n, stream.table().n) == (4, 3)
    assert (copy + stream).n == 7


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_stream_is_refused_even_if_its_lock_was_held(tmp_path):
    stream = filled()
    with stream._lock:
        child = os.fork()
        if child == 0:  # pragma: no cover - not traced
            try:
                stream.update(1, 0.5)
            except RuntimeError as error:
                os._exit(0 if "belongs to another process" in str(error) else 1)
            os._exit(2)
    for _ in range(1000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(child, signal.SIGKILL)
        pytest.fail("the child waits for a lock that nobody will release")
    assert os.waitstatus_to_exitcode(status) == 0
    stream.update(1, 0.5)
    assert stream.table().n == 4


def test_two_streams_cannot_overwrite_each_others_checkpoint(tmp_path):
    path = tmp_path / "stream.parquet"
    first, second = filled(), filled(2)
    first.checkpoint(path)
    with pytest.raises(FileExistsError, match="rows would be lost"):
        second.checkpoint(path)
    later = StreamingTable.restore(path)
    later.update(1, 0.5)
    later.checkpoint(path)
    later.checkpoint(path)
    with pytest.raises(FileExistsError, match="restore it first"):
        first.checkpoint(path)
    assert cal.BinTable.load(path).n == 4
    second.checkpoint(path, overwrite=True)
    assert cal.BinTable.load(path).n == 2
    assert os.listdir(tmp_path) == ["stream.parquet"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_stream_into_fixed_bins_gives_the_table_of_its_rows(dtype, fast, tmp_path):
    rng = np.random.default_rng(3)
    p = rng.random(5000).astype(dtype)
    y = (rng.random(5000) < p).astype(np.int64)
    stream = StreamingTable(grid=cal.EqualWidth(15))
    for start in range(0, 4000, 500):
        stream.update(y[start : start + 500], p[start : start + 500])
    stream.checkpoint(tmp_path / "bins.parquet")
    for other in (stream, StreamingTable.restore(tmp_path / "bins.parquet"), pickle.loads(pickle.dumps(stream))):
        other.update(y[4000:].tolist(), p[4000:])
        with pytest.raises(cal.InvalidPredictions):
            other.update(y[:2] + 2, p[:2])
        assert other.table().n == 5000
        assert cal.ece(other.table()) == pytest.approx(cal.ece(y, p, bins=cal.EqualWidth(15)), rel=1e-12)


def test_a_stream_into_fixed_bins_takes_weights_and_can_be_added_and_empty(fast):
    stream, other = (StreamingTable(grid=cal.EqualWidth(4)) for _ in range(2))
    assert stream.table().n == 0
    stream.update([0, 1], [0.2, 0.7])
    other.update([1, 1], [0.2, 0.7], weight=[1.0, 2.0])
    assert (stream + other).weight.tolist() == [2.0, 0.0, 3.0, 0.0]
    with pytest.raises(ValueError, match="cut alike"):
        stream + StreamingTable()


def test_events_classes_and_pixels():
    y, p = batch_rows([[0.2, 0.7]], [[0, 1]], None)
    assert (y.tolist(), p.tolist()) == ([0, 1], [0.2, 0.7])
    pixels = np.zeros((1, 3, 2, 2))
    pixels[:, 1] = 1.0
    y, p = batch_rows(pixels, [[[1, 0], [-1, 1]]], -1)
    assert (y.tolist(), p.tolist()) == ([1, 0, 1], [1.0, 1.0, 1.0])  # whether the top class was right


def test_a_batch_may_be_left_out_whole():
    y, p = batch_rows(np.full((2, 3), 1 / 3), [-1, -1], -1)
    assert len(y) == len(p) == 0


def test_wrong_shapes_are_refused():
    with pytest.raises(cal.InvalidPredictions, match="shape of target"):
        batch_rows(np.zeros((2, 3)), np.zeros(3), None)


def test_weights_that_need_another_unit_are_refused_and_nothing_is_added():
    stream = StreamingTable()
    stream.update([0, 1], [0.2, 0.7], weight=[1e76, 1e76])
    for weight in (1e78, 1e-78):
        with pytest.raises(cal.InvalidPredictions, match=r"between 1e-77 and 1e77.*divide all weights"):
            stream.update([0, 1], [0.2, 0.7], weight=[weight, weight])
    assert stream.table().n == 2
