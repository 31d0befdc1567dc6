"""A bar where somebody looks, silence elsewhere, and nothing left behind by Ctrl-C."""

import io
import os
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console
from rich.progress import Progress

from calibrant.scale import bin_table, sources
from tests.scale.logs import make_log


def test_nothing_is_shown_where_the_standard_error_is_no_terminal(capfd):
    bin_table(make_log(10), y_true="y", y_prob="p")
    assert capfd.readouterr() == ("", "")


def test_a_bar_is_shown_when_asked_for(tmp_path, capfd):
    make_log(10).to_parquet(tmp_path / "log.parquet")
    table = bin_table([tmp_path / "log.parquet", make_log(10)], y_true="y", y_prob="p", progress=True)
    assert table.n == 20
    assert "100%" in capfd.readouterr().err


def test_the_bar_counts_parts_and_asks_the_engine(monkeypatch):
    monkeypatch.setattr(sources, "INTERVAL", 0.01)
    with Progress(console=Console(file=io.StringIO())) as lines:
        bar = sources.Watch(lines, parts=2)
        with bar.part("first"), bar.asking(lambda: 50.0):
            time.sleep(0.1)
            assert lines.tasks[0].completed == 50
        assert lines.tasks[0].completed == 100
        with bar.part("second"), bar.asking(lambda: None):
            time.sleep(0.05)
        assert lines.finished


def test_control_c_ends_a_job_at_once_and_leaves_nothing(tmp_path):
    code = (
        "import signal, sys, numpy as np, polars as pl\nfrom calibrant.scale import bin_table\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a parent in the background may have it ignored
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})\n"  # or blocked
        "p = np.random.default_rng(0).random(2_000_000)\n"
        "pl.DataFrame({'p': p, 'y': p > 0.5}).write_parquet(sys.argv[1] + '/log.parquet')\n"
        "print('.', flush=True)\n"
        "for _ in range(10_000):\n"
        "    bin_table(sys.argv[1] + '/*.parquet', y_true='y', y_prob='p').save(sys.argv[1] + '/out.table')\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        time.sleep(0.5)
        for _ in range(60):  # a library that the first one meets in a destructor may swallow it: users press again
            process.send_signal(signal.SIGINT)
            try:
                process.communicate(timeout=1)
                break
            except subprocess.TimeoutExpired:
                continue
        else:
            process.kill()
            pytest.fail("the job went on through a minute of Ctrl-C")
    assert process.returncode != 0
    assert set(os.listdir(tmp_path)) <= {"log.parquet", "out.table"}


def test_a_bar_without_rich_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(ImportError, match="calibrant"):
        bin_table(make_log(10), y_true="y", y_prob="p", progress=True)
