"""`calibrant monitor`: one line, three exit codes, and a state that belongs to one model."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

OPTIONS = ["--state", "m.json", "--truth", "y", "--prob", "p", "--time", "day", "--by", "country"]


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for day in range(24):
        p = rng.beta(1, 3, 300)
        rate = p / (p + 0.35 * (1 - p)) if day >= 12 else p
        columns = {
            "y": (rng.random(300) < rate).astype(int),
            "p": p,
            "day": np.datetime64("2026-05-01") + day,
            "country": rng.choice(["DE", "FR"], 300),
            "patient": rng.integers(0, 100, 300),
        }
        pd.DataFrame(columns).to_parquet(tmp_path / f"{day:02d}.parquet")
    return tmp_path


def test_a_change_ends_in_an_alarm_and_its_exit_code(invoke_in, folder):
    codes = [invoke_in(folder, "monitor", f"{day:02d}.parquet", *OPTIONS)[0] for day in range(12)]
    assert set(codes) <= {0, 3}
    for day in range(12, 24):
        code, out, _ = invoke_in(folder, "monitor", f"{day:02d}.parquet", *OPTIONS)
    assert code == 1
    assert out.startswith("Alarm on 2026-05-1")
    assert len(out.strip().splitlines()) == 1


def test_the_same_file_again_changes_nothing_and_json_holds_the_status(invoke_in, folder):
    invoke_in(folder, "monitor", "00.parquet", *OPTIONS)
    before = json.loads((folder / "m.json").read_text())
    code, out, _ = invoke_in(folder, "monitor", "00.parquet", *OPTIONS, "--json")
    assert "nothing was added" in json.loads(out)["sentence"]
    assert json.loads((folder / "m.json").read_text())["rows"] == before["rows"] == 300
    assert code in (0, 3)


def test_few_rows_have_their_own_exit_code(invoke_in, folder):
    code, out, _ = invoke_in(folder, "monitor", "00.parquet", *OPTIONS, "--where", "p < 0.02")
    assert code == 3
    assert out.startswith("Not enough yet")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*OPTIONS, "--tolerance", "0.3"], "watches with tolerance 0.1, not 0.3"),
        (OPTIONS[:-2], "Use another --state for another model"),
        ([*OPTIONS[:4], "--prob", "p * 0.5", *OPTIONS[6:]], "Use another --state"),
    ],
)
def test_the_state_of_another_model_is_refused(invoke_in, folder, options, message):
    invoke_in(folder, "monitor", "00.parquet", *OPTIONS)
    before = (folder / "m.json").read_bytes()
    code, _, err = invoke_in(folder, "monitor", "01.parquet", *options)
    assert (code, message in err) == (2, True)
    assert (folder / "m.json").read_bytes() == before


def test_a_state_that_is_none_is_refused(invoke_in, folder):
    (folder / "m.json").write_text('{"format": "calibrant-map"}')
    code, _, err = invoke_in(folder, "monitor", "00.parquet", *OPTIONS)
    assert code == 2
    assert "not the state of a monitor" in err


def test_a_mistyped_date_is_refused_and_the_state_kept(invoke_in, folder):
    invoke_in(folder, "monitor", "00.parquet", *OPTIONS)
    before = (folder / "m.json").read_bytes()
    frame = pd.read_parquet(folder / "01.parquet")
    frame["day"] = np.datetime64("2226-05-02")
    frame.to_parquet(folder / "wrong.parquet")
    code, _, err = invoke_in(folder, "monitor", "wrong.parquet", *OPTIONS)
    assert code == 2
    assert "2226-05-02" in err
    assert (folder / "m.json").read_bytes() == before


def test_rows_that_are_not_final_are_refused(invoke_in, folder):
    options = [*OPTIONS, "--horizon", "30"]
    code, _, err = invoke_in(folder, "monitor", "00.parquet", *options, "--today", "2026-05-20")
    assert code == 2
    assert "30 periods before today" in err
    assert invoke_in(folder, "monitor", "00.parquet", *options, "--today", "2026-06-20")[0] in (0, 3)


def test_clusters_count_once(invoke_in, folder):
    options = ["--state", "c.json", "--truth", "y", "--prob", "p", "--time", "day", "--cluster", "patient"]
    assert invoke_in(folder, "monitor", "00.parquet", *options)[0] in (0, 3)
    state = json.loads((folder / "c.json").read_text())
    assert 90 <= sum(state["series"][""]["0"][1]) <= 100


def test_a_page_is_written_and_not_overwritten(invoke_in, folder):
    invoke_in(folder, "monitor", "00.parquet", *OPTIONS, "--html", "status.html")
    assert "Is the model still calibrated?" in (folder / "status.html").read_text()
    code, _, err = invoke_in(folder, "monitor", "01.parquet", *OPTIONS, "--html", "status.html")
    assert (code, "exists already" in err) == (2, True)
    assert json.loads((folder / "m.json").read_text())["rows"] == 300


def test_two_groupings_are_refused(invoke_in, folder):
    code, _, err = invoke_in(folder, "monitor", "00.parquet", *OPTIONS, "--by", "patient")
    assert (code, "Give one --by" in err) == (2, True)


def test_a_large_file_is_watched_through_the_table_of_each_day(invoke_in, folder, monkeypatch):
    monkeypatch.setattr("calibrant.cli.files.TABLE_ROWS", 100)
    options = ["--state", "t.json", "--truth", "y", "--prob", "p", "--time", "day"]
    code, _, err = invoke_in(folder, "monitor", "0*.parquet", *options)
    assert code in (0, 3), err
    state = json.loads((folder / "t.json").read_text())
    assert (state["rows"], state["now"], state["deliveries"]) == (3000, 9, 10)
    assert invoke_in(folder, "monitor", "10.parquet", *options, "--by", "country")[0] == 2


@pytest.mark.slow
def test_a_killed_update_leaves_the_old_state_whole(invoke_in, folder):
    invoke_in(folder, "monitor", "00.parquet", *OPTIONS)
    before = json.loads((folder / "m.json").read_text())
    for wait in (0.3, 0.6, 0.9, 1.2, 1.5, 1.8):
        command = [sys.executable, "-m", "calibrant", "monitor", "01.parquet", *OPTIONS]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert json.loads((folder / "m.json").read_text())["rows"] in (before["rows"], 600)
    assert invoke_in(folder, "monitor", "01.parquet", *OPTIONS)[0] in (0, 3)
    assert json.loads((folder / "m.json").read_text())["rows"] == 600
