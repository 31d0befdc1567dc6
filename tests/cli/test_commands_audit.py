"""`calibrant audit`, its repair in `calibrant apply`, and `calibrant report --audit`."""

import json

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.cli import files
from calibrant.scale import duckdb_files

TASK = ["--truth", "y", "--prob", "p"]


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(0)
    p, age = rng.uniform(0.1, 0.5, 3000), rng.integers(18, 90, 3000)
    device = rng.choice(["app", "web"], 3000).astype(object)
    columns = {
        "y": (rng.random(3000) < p + 0.3 * ((device == "app") & (age < 40))).astype(int),
        "p": p,
        "age": age,
        "device": device,
        "vip": rng.random(3000) < 0.2,
        "day": np.datetime64("2026-05-01"),
        "patient": rng.integers(0, 900, 3000),
    }
    found = pd.DataFrame(columns)
    found.loc[::50, "device"] = None
    found["amount"] = rng.normal(size=3000)
    found.loc[::40, "amount"] = np.nan
    return found


@pytest.fixture
def folder(tmp_path, scores):
    scores.to_parquet(tmp_path / "scores.parquet")
    scores.to_csv(tmp_path / "scores.csv", index=False)
    return tmp_path


def test_it_finds_the_segment_and_writes_page_and_map(invoke_in, folder):
    code, out, err = invoke_in(
        folder, "audit", "scores.parquet", *TASK, "--features", "*", "--repair", "map.json", "-o", "page.html"
    )
    assert code == 0
    assert "device = app and age < " in out
    assert "Left out 'day': a date is not a feature" in err
    assert "Wrote map.json" in err
    page = (folder / "page.html").read_text(encoding="utf8")
    assert "scores.parquet --truth y --prob p" in page
    assert "Left out" in page
    assert code == invoke_in(folder, "audit", "scores.parquet", *TASK, "--features", "age", "--json")[0]
    assert invoke_in(folder, "audit", "scores.parquet", *TASK, "-o", "page.html")[0] == 2  # it is there already


@pytest.mark.parametrize(
    ("kind", "output"), [("parquet", "parquet"), ("csv", "csv"), ("csv", "parquet"), ("csv", "jsonl")]
)
def test_apply_reads_the_features_of_every_kind_of_file(invoke_in, folder, scores, kind, output):
    invoke_in(folder, "audit", "scores.parquet", *TASK, "--repair", "map.json")
    code, _, err = invoke_in(folder, "apply", "map.json", f"scores.{kind}", "--prob", "p", "-o", f"out.{output}")
    assert code == 0, err
    read = {"parquet": pd.read_parquet, "csv": pd.read_csv, "jsonl": lambda path: pd.read_json(path, lines=True)}
    found = read[output](folder / f"out.{output}")["p_recalibrated"]
    fitted = cal.recalibrate.load(folder / "map.json")
    expected = fitted.predict_proba(scores["p"].to_numpy(), features=scores)[:, 1]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.abs(expected - scores["p"]).max() > 0.1


def test_json_lines_are_read_too_and_other_values_are_named(invoke_in, folder, scores):
    invoke_in(folder, "audit", "scores.parquet", *TASK, "--repair", "map.json")
    used = [one["name"] for one in cal.recalibrate.load(folder / "map.json").features_]
    assert "age" in used
    some = scores.drop(columns="day").head(20)
    some.to_json(folder / "some.jsonl", orient="records", lines=True)
    assert invoke_in(folder, "apply", "map.json", "some.jsonl", "--prob", "p", "-o", "out.jsonl")[0] == 0
    some.assign(age="old").to_csv(folder / "bad.csv", index=False)
    code, _, err = invoke_in(folder, "apply", "map.json", "bad.csv", "--prob", "p", "-o", "out.csv")
    assert code == 2
    assert "Column 'age' must be a number, as in the fit, but is 'old' in row 1." in err
    some.drop(columns="age").to_csv(folder / "less.csv", index=False)
    code, _, err = invoke_in(folder, "apply", "map.json", "less.csv", "--prob", "p", "-o", "out.csv")
    assert code == 2
    assert "There is no column 'age'" in err
    code, out, _ = invoke_in(folder, "apply", "map.json", "--sql", "--prob", "p")
    assert code == 0
    assert '"age"' in out


def test_clusters_json_and_names_that_are_not_there(invoke_in, folder):
    code, out, _ = invoke_in(
        folder, "audit", "scores.csv", *TASK, "--cluster", "patient", "--features", "age", "--json"
    )
    assert code == 0
    assert json.loads(out)["test"]["details"]["tables"] is None  # clusters have no look at tables
    code, _, err = invoke_in(folder, "audit", "scores.csv", *TASK, "--features", "nothing")
    assert code == 2
    assert "There is no column 'nothing'" in err


def test_several_features_may_be_given_at_once_and_forecasts_have_no_repair(invoke_in, folder):
    code, out, _ = invoke_in(folder, "audit", "scores.parquet", *TASK, "--features", "age,device", "--features", "am*")
    assert code == 0
    again = invoke_in(
        folder, "audit", "scores.parquet", *TASK, *(f"--features={x}" for x in ("age", "device", "amount"))
    )
    assert again[1] == out
    forecasts = ["--truth", "amount", "--mean", "p", "--std", "p", "--drop-missing"]
    code, _, err = invoke_in(folder, "audit", "scores.parquet", *forecasts, "--repair", "map.json")
    assert (code, (folder / "map.json").exists()) == (2, False)
    assert "--repair needs binary probabilities" in err


def test_very_many_rows_are_sampled_and_that_is_said(invoke_in, folder, monkeypatch):
    monkeypatch.setattr(files, "AUDIT_ROWS", 500)
    code, out, err = invoke_in(folder, "audit", "scores.parquet", *TASK, "--features", "age", "-o", "page.html")
    assert code == 0
    assert "3,000 rows: audited a random sample of 500 of them." in err
    assert "n = 500" in out
    assert "random sample of 500" in (folder / "page.html").read_text(encoding="utf8")
    again = invoke_in(folder, "audit", "scores.parquet", *TASK, "--features", "age")[1]
    assert again == out


def test_the_report_reads_its_file_once(invoke_in, folder, monkeypatch):
    reads = []
    monkeypatch.setattr(files, "read", lambda *given: reads.append(given) or duckdb_files.read(*given))
    code, out, _ = invoke_in(folder, "report", "scores.parquet", *TASK, "--audit", "*")
    assert (code, len(reads)) == (0, 1)
    assert "Where, for whom" in out


def test_a_report_of_a_table_says_that_it_has_no_rows_to_audit(invoke_in, folder, monkeypatch):
    monkeypatch.setattr(files, "TABLE_ROWS", 500)
    code, out, _ = invoke_in(folder, "report", "scores.parquet", *TASK, "--audit", "age")
    assert code == 0
    assert "A table has no rows to audit by features" in out


def test_the_report_has_a_section(invoke_in, folder):
    code, out, _ = invoke_in(folder, "report", "scores.csv", *TASK, "--audit", "age", "--audit", "device")
    assert code == 0
    assert "Where, for whom" in out
    assert "device = app and age < " in out
