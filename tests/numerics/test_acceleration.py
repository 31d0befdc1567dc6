"""When loops run as machine code: what the environment says, and by default only where it pays."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import threadpoolctl

import calibrant as cal
from calibrant.numerics import acceleration as switch


@pytest.fixture
def _fresh(monkeypatch):
    """A process in which nothing has been started."""
    monkeypatch.setattr(switch._State, "module", None)
    monkeypatch.setattr(switch._State, "warm", False)
    monkeypatch.setattr(switch._State, "failed", False)


@pytest.mark.parametrize(("value", "meant"), [("0", "off"), ("OFF", "off"), ("1", "on"), ("on", "on"), ("", "auto")])
def test_the_environment_switches(value, meant, monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", value)
    assert switch.setting() == meant


def test_an_unknown_setting_is_refused(monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "perhaps")
    with pytest.raises(ValueError, match="CALIBRANT_FAST must be auto, on or off, got 'perhaps'"):
        switch.setting()


@pytest.mark.usefixtures("_fresh")
def test_off_is_off_however_many_rows(monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "off")
    assert switch.compiled(10**12, saves=100) is None
    assert switch.warm_up() is False
    assert switch.status() == "off (CALIBRANT_FAST)"


@pytest.mark.usefixtures("_fresh")
def test_by_default_it_starts_only_where_the_rows_pay_for_the_start(monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "auto")
    asked = []
    monkeypatch.setattr(switch, "_loaded", lambda *, required: asked.append(required))
    switch.compiled(int(switch.START / 4) - 1, saves=4.0)
    assert asked == []
    switch.compiled(int(switch.START / 4), saves=4.0)
    assert asked == [False]


@pytest.mark.usefixtures("_fresh")
def test_once_started_calls_with_many_rows_use_it_and_all_calls_after_a_warm_up(monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "auto")
    monkeypatch.setattr(switch._State, "module", switch)
    assert switch.compiled(switch.FEW_ROWS, saves=1.0) is switch
    assert switch.compiled(switch.FEW_ROWS - 1, saves=1.0) is None
    monkeypatch.setattr(switch._State, "warm", True)
    assert switch.compiled(1, saves=1.0) is switch


@pytest.mark.usefixtures("_fresh")
def test_a_numba_that_does_not_work_is_forgotten_unless_it_is_demanded(monkeypatch):
    monkeypatch.setitem(sys.modules, "calibrant.numerics.compiled", None)
    monkeypatch.delattr("calibrant.numerics.compiled", raising=False)
    monkeypatch.setenv("CALIBRANT_FAST", "auto")
    assert switch.compiled(10**12, saves=100) is None
    assert switch.warm_up() is False
    monkeypatch.setenv("CALIBRANT_FAST", "on")
    for _ in range(2):
        with pytest.raises(ImportError, match=r"pip install 'calibrant\[fast\]'"):
            switch.compiled(1, saves=1.0)


@pytest.mark.usefixtures("_fresh")
def test_starting_compiles_everything():
    pytest.importorskip("numba")
    assert switch.warm_up() is True
    assert switch._State.warm
    assert switch.status().startswith("started")


@pytest.mark.parametrize(("rows", "chunks"), [(0, 1), (1, 1), (switch.CHUNK_ROWS, 1), (5 * switch.CHUNK_ROWS + 3, 6)])
def test_chunks_come_in_order_and_hold_every_row_once(rows, chunks, monkeypatch):
    for threads in (1, 3):
        monkeypatch.setattr(switch, "thread_limit", lambda t=threads: t)
        parts = switch.by_chunks(rows, lambda part: (part.start, part.stop))
        assert len(parts) == chunks
        assert [start for start, _ in parts[1:]] == [stop for _, stop in parts[:-1]]
        assert (parts[0][0], parts[-1][1]) == (0, rows)


@pytest.mark.parametrize(("given", "most"), [("1", 1), ("1,2", 1), ("1000000", None), ("0", None), ("", None)])
def test_threads_keep_within_the_usual_limit(given, most, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    found = switch.thread_limit.__wrapped__()
    assert found == most or (most is None and found >= 1)


def test_neither_importing_nor_measuring_a_few_rows_starts_numba():
    code = (
        "import sys, numpy as np, calibrant as cal\n"
        "p = np.linspace(0, 1, 200_000); y = p > 0.4\n"
        "cal.ece(y, p, bins=cal.EqualWidth(15)); cal.ks_error(y, p); cal.sweep_ece(y, p); cal.ece(y, p)\n"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**__import__("os").environ, "CALIBRANT_FAST": "auto"})


def test_versions_say_what_results_may_depend_on(capsys, monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "off")
    cal.show_versions()
    shown = dict(
        line.split(maxsplit=1) for line in capsys.readouterr().out.replace("compiled loops", "loops").splitlines()
    )
    assert shown["calibrant"] == cal.__version__
    assert {"python", "numpy", "scipy"} <= set(shown)
    assert shown["loops"] == "off (CALIBRANT_FAST)"


def test_a_missing_numba_is_said_with_the_remedy(capsys, monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "auto")
    monkeypatch.setattr(switch, "find_spec", lambda _: None)
    cal.show_versions()
    assert "not installed (pip install 'calibrant[fast]')" in capsys.readouterr().out


def test_warming_up_where_it_is_switched_off_does_nothing(monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "off")
    assert cal.warm_up() is False


def blas_threads():
    return {one["num_threads"] for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"}


class Watching(cal.recalibrate.Temperature):
    """Notes the threads of BLAS while it is fitted."""

    def _fit(self, *sample):
        self.seen_ = blas_threads()
        if self.laplace:
            raise FloatingPointError
        super()._fit(*sample)


@pytest.mark.skipif(not blas_threads(), reason="the threads of this BLAS cannot be counted")
def test_multiclass_fits_use_one_thread_of_blas_and_leave_the_limit_as_it_was():
    p, y = np.full((6, 3), 1 / 3), np.arange(6) % 3
    with threadpoolctl.threadpool_limits(2, "blas"):
        assert Watching().fit(p, y).seen_ == {1}
        assert blas_threads() == {2}
        with pytest.raises(FloatingPointError):
            Watching(laplace=0.1).fit(p, y)
        assert blas_threads() == {2}


@pytest.mark.skipif(not blas_threads(), reason="the threads of this BLAS cannot be counted")
def test_the_last_of_several_threads_lifts_the_limit():
    first, second = Barrier(2), Barrier(2)

    def early():
        with switch.one_blas_thread:
            first.wait()
        second.wait()

    with threadpoolctl.threadpool_limits(2, "blas"), ThreadPoolExecutor(1) as pool:
        with switch.one_blas_thread:
            left = pool.submit(early)
            first.wait()
            second.wait()
            assert blas_threads() == {1}
        left.result()
        assert blas_threads() == {2}
