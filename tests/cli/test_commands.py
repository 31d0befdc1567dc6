"""The command line as a user meets it: answers, guesses said aloud, exit codes, and errors of one sentence."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import calibrant as cal
from calibrant.cli import files

rng = np.random.default_rng(0)
P = rng.random(1200)
FRAME = pd.DataFrame(
    {
        "y": (rng.random(1200) < 0.5 + 0.6 * (P - 0.5)).astype(int),
        "p": P,
        "better": 0.5 + 0.6 * (P - 0.5),
        "country": np.where(rng.random(1200) < 0.5, "at", "de"),
        'odd"; drop table x --': P,
        "mean": np.zeros(1200),
        "std": np.full(1200, 0.5) + P,
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cli")
    FRAME.to_parquet(place / "scores.parquet")
    FRAME.to_csv(place / "scores.csv", index=False)
    FRAME.to_json(place / "scores.jsonl", orient="records", lines=True)
    FRAME.to_feather(place / "scores.arrow")
    return place


def run(*arguments, folder, stdin=None):
    command = [sys.executable, "-m", "calibrant", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, cwd=folder, input=stdin, timeout=300, check=False)


def test_help_names_every_command(folder):
    text = run("--help", folder=folder).stdout.decode()
    for command in ("report", "measure", "test", "recalibrate", "apply", "simulate", "compare", "serve", "demo"):
        assert command in text


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["scores.parquet", "scores.csv", "scores.jsonl", "scores.arrow"])
def test_every_format_gives_the_same_numbers(folder, invoke_in, name):
    code, out, err = invoke_in(folder, "measure", name, "--json")
    assert code == 0, err
    values = {row["name"]: row["value"] for row in json.loads(out)}
    assert values["ECE (L1)"] == pytest.approx(cal.ece(FRAME["y"], FRAME["p"]), abs=1e-9)
    assert "Taking column 'y' as --truth." in err
    assert "Taking column 'p' as --prob." in err


def test_standard_input_and_a_condition(folder):
    done = run(
        "measure", "-", "--json", "--where", "country = 'at'", folder=folder, stdin=(folder / "scores.csv").read_bytes()
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[1]["n"] == (FRAME["country"] == "at").sum()


def test_a_column_name_cannot_escape_its_quotes(folder, invoke_in):
    code, _, err = invoke_in(folder, "measure", "scores.parquet", "--prob", 'odd"; drop table x --', "--json")
    assert code == 0, err


GATES = {
    "above": (("measure", "scores.parquet", "--fail-above", "0.02"), 1),
    "below": (("measure", "scores.parquet", "--fail-above", "0.5"), 0),
    "not shown to be below": (("measure", "scores.parquet", "--fail-above", "0.13", "--gate", "upper"), 3),
    "not shown to be above": (("measure", "scores.parquet", "--fail-above", "0.13"), 3),
    "by the estimate": (("measure", "scores.parquet", "--fail-above", "0.13", "--gate", "estimate"), 0),
    "a ratio": (("measure", "scores.parquet", "--limit", "oe=2:3"), 1),
    "a slope": (("measure", "scores.parquet", "--limit", "slope=0.1:3"), 0),
    "relative": (("measure", "scores.parquet", "--limit", "relative=0.02"), 1),
    "coverage": (("measure", "scores.parquet", "--mean", "mean", "--std", "std", "--limit", "coverage:0.9=0:0.5"), 1),
    "ENCE of probabilities": (("measure", "scores.parquet", "--limit", "ence=0.1"), 2),
    "a level near 1": (("measure", "scores.parquet", "--level", "0.999999999999", "--fail-above", "0.9"), 0),
    "missing rows": (("measure", "holes.csv", "--drop-missing", "--fail-above", "0.9"), 1),
    "missing rows accepted": (
        ("measure", "holes.csv", "--drop-missing", "--fail-above", "0.9", "--max-missing", "1"),
        0,
    ),
    "missing rows of a test": (("test", "holes.csv", "--drop-missing", "--fail"), 1),
    "one group": (("measure", "groups.csv", "--by", "g", "--fail-above", "0.15", "--per-group"), 1),
    "all rows": (("measure", "groups.csv", "--by", "g", "--fail-above", "0.15"), 0),
    "forecasts": (("measure", "scores.parquet", "--mean", "mean", "--std", "std", "--fail-above", "0.02"), 1),
    "a limit of NaN": (("measure", "scores.parquet", "--fail-above", "nan"), 2),
    "a limit of 5": (("measure", "scores.parquet", "--fail-above", "5"), 2),
    "a level of NaN": (("measure", "scores.parquet", "--level", "nan", "--fail-above", "0.02"), 2),
    "a level of 5": (("measure", "scores.parquet", "--level", "5", "--fail-above", "0.02"), 2),
    "an unknown end": (("measure", "scores.parquet", "--gate", "middle", "--fail-above", "0.02"), 2),
    "no such option": (("measure", "scores.parquet", "--fial-above", "0.02"), 2),
    "per group without groups": (("measure", "scores.parquet", "--fail-above", "0.02", "--per-group"), 2),
    "rejected": (("test", "scores.parquet", "--fail"), 1),
    "rejected, but not asked": (("test", "scores.parquet"), 0),
    "alpha of NaN": (("test", "scores.parquet", "--fail", "--alpha", "nan"), 2),
    "alpha of 5": (("test", "scores.parquet", "--fail", "--alpha", "5"), 2),
    "a broken map": (("apply", "broken.json", "scores.parquet", "--prob", "p"), 2),
    "a port out of range": (("serve", "scores.parquet", "--port", "99999"), 2),
}


@pytest.mark.parametrize("case", GATES)
def test_each_result_of_a_gate_has_its_exit_code_and_bad_input_is_2(folder, invoke_in, case):
    (folder / "broken.json").write_text('{"format": "calibrant-map", "version": 3, "map": {}}')
    far = np.where(np.arange(1200) < 150, FRAME["p"] ** 4, FRAME["p"])
    y = np.random.default_rng(1).random(1200) < far
    pd.DataFrame({"y": y.astype(int), "p": FRAME["p"], "g": np.arange(1200) < 150}).to_csv(
        folder / "groups.csv", index=False
    )
    holes = pd.DataFrame({"y": np.arange(300) % 2, "p": np.where(np.arange(300) % 3, np.nan, 0.5)})
    holes.to_csv(folder / "holes.csv", index=False)
    arguments, expected = GATES[case]
    code, out, err = invoke_in(folder, *arguments)
    assert code == expected, (out, err)
    assert ("Gate: failed. " in err) == (expected == 1)
    assert ("Gate: too few rows to decide. " in err) == (expected == 3)
    assert "Traceback" not in err


def test_an_error_of_our_own_is_neither_1_nor_2(folder, monkeypatch, invoke_in):
    def broken(*_, **__):
        {}["no such key"]

    def foreign(*_, **__):
        int("x", base=99)

    for fault in (broken, foreign):
        monkeypatch.setattr(files, "load", fault)
        code, _, err = invoke_in(folder, "measure", "scores.parquet")
        assert code == 70
        assert "an error of calibrant itself" in " ".join(err.split())
        assert "Traceback" not in err
        code, _, err = invoke_in(folder, "measure", "scores.parquet", "--debug")
        assert code == 70
        assert "Traceback" in err


def test_measure_has_a_line_per_group(folder, invoke_in):
    _, out, _ = invoke_in(folder, "measure", "scores.parquet", "--by", "country", "--json")
    groups = [line for line in json.loads(out) if "group" in line]
    _, only, _ = invoke_in(folder, "measure", "scores.parquet", "--where", "country = 'at'", "--json")
    assert next(line["value"] for line in groups if line["group"] == "at") == json.loads(only)[0]["value"]
    assert "country = at" in invoke_in(folder, "measure", "scores.parquet", "--by", "country")[1]


def test_the_gate_is_in_json(folder, invoke_in):
    options = ("--by", "country", "--per-group", "--limit", "error=0.02", "--limit", "oe=0.5:2", "--json")
    code, out, _ = invoke_in(folder, "measure", "scores.parquet", *options)
    gate = json.loads(out)[-1]["gate"]
    assert code == gate["exit_code"] == 1
    assert (gate["result"], gate["by"], gate["limits"]) == ("failed", "lower", {"error": 0.02, "oe": [0.5, 2.0]})
    assert gate["sentence"].startswith("Gate: failed.")
    assert {check["group"] for check in gate["checks"]} == {None, "at", "de"}
    code, out, _ = invoke_in(folder, "test", "scores.parquet", "--fail", "--json")
    assert json.loads(out)["gate"]["result"] == "failed"
    assert "gate" not in json.loads(invoke_in(folder, "test", "scores.parquet", "--json")[1])


def test_groups_that_are_not_shown_are_counted(folder, invoke_in):
    FRAME.assign(g=np.arange(1200) % 60).to_csv(folder / "sixty.csv", index=False)
    _, out, _ = invoke_in(folder, "measure", "sixty.csv", "--by", "g")
    assert out.splitlines()[-1] == "10 smaller groups are not shown; --json has all groups."
    _, out, _ = invoke_in(folder, "measure", "sixty.csv", "--by", "g", "--json")
    assert sum("group" in line for line in json.loads(out)) == 60


def test_the_test_command_rejects_and_says_so(folder, invoke_in):
    assert "calibration is rejected" in invoke_in(folder, "test", "scores.parquet")[1]


def test_forecasts_are_reported_by_several_groupings(folder, invoke_in):
    options = ("--truth", "y", "--mean", "mean", "--std", "std", "--by", "country", "--by", "p > 0.5")
    code, out, err = invoke_in(folder, "report", "scores.parquet", *options)
    assert code == 0, err
    for name in ("Countries", "  at ", "  de ", "P > 0.5", "  true ", "  false "):
        assert name in out


def test_forecasts_are_recalibrated(folder, tmp_path, invoke_in):
    options = ("--mean", "mean", "--std", "std")
    fitted = invoke_in(tmp_path, "recalibrate", folder / "scores.parquet", *options, "-o", "map.json")
    assert fitted[0] == 0, fitted
    applied = invoke_in(tmp_path, "apply", "map.json", folder / "scores.parquet", *options)
    assert applied[0] == 0, applied
    fixed = pd.read_parquet(tmp_path / "fixed.parquet")
    pd.testing.assert_frame_equal(fixed[FRAME.columns], FRAME)
    assert list(fixed.columns[-2:]) == ["mean_recalibrated", "std_recalibrated"]
    given = FRAME[["mean", "std"]].to_numpy()
    expected = cal.recalibrate.AutoForecast().fit(given, FRAME["y"]).transform(given)
    np.testing.assert_allclose(fixed[["mean_recalibrated", "std_recalibrated"]], expected)


def test_a_map_is_printed_as_sql(tmp_path, invoke_in):
    made = cal.recalibrate.Platt().fit(FRAME["p"], FRAME["p"] > 0.5)
    made.save(tmp_path / "map.json")
    options = ("--sql", "--prob", "p", "--dialect", "sqlite")
    assert invoke_in(tmp_path, "apply", "map.json", *options)[:2] == (0, made.to_sql("p", dialect="sqlite") + "\n")
    code, _, err = invoke_in(tmp_path, "apply", "map.json")
    assert (code, "Name the file of predictions" in err) == (2, True)


@pytest.mark.no_cover
def test_escape_sequences_of_groups_do_not_reach_the_terminal(folder, tmp_path, invoke_in):
    names = np.where(FRAME["p"] > 0.5, "\x1b[31mred\x1b[0m", "plain")
    FRAME.assign(**{"\x1b[2Jname": names}).to_parquet(tmp_path / "evil.parquet")
    for arguments in (
        ("measure", "evil.parquet", "--by", "\x1b[2Jname"),
        ("measure", "evil.parquet", "--by", "\x1b[2Jname", "--fail-above", "0", "--per-group"),
        ("measure", "evil.parquet", "--prob", "\x1b[2Jother"),
        ("measure", "\x1b[2Jno.parquet"),
    ):
        _, out, err = invoke_in(tmp_path, *arguments)
        assert "\x1b" not in out + err, arguments
        assert r"\x1b[" in out + err


def test_a_report_is_written_once_and_never_over_another(folder, tmp_path, invoke_in):
    target = tmp_path / "report.html"
    done = run("report", folder / "scores.parquet", "--by", "country", "-o", target, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"Predicted probabilities are too extreme" in done.stdout
    assert target.read_text(encoding="utf8").startswith("<!doctype html>")
    code, _, err = invoke_in(tmp_path, "report", folder / "scores.parquet", "-o", target)
    assert code == 2
    assert "exists already" in err


def test_maps_are_fitted_saved_and_applied(folder, tmp_path, invoke_in):
    fitted = invoke_in(tmp_path, "recalibrate", folder / "scores.parquet", "--method", "platt", "-o", "map.json")
    assert fitted[0] == 0, fitted
    applied = invoke_in(tmp_path, "apply", "map.json", folder / "scores.csv", "-o", "fixed.parquet")
    assert applied[0] == 0, applied
    fixed = pd.read_parquet(tmp_path / "fixed.parquet")
    assert list(fixed.columns) == [*FRAME.columns, "p_recalibrated"]
    before, after = (cal.averaged_error(fixed["y"], fixed[name]) for name in ("p", "p_recalibrated"))
    assert after < before / 3
    np.testing.assert_allclose(fixed["p"], FRAME["p"])


def test_two_models_are_compared_on_the_same_rows(folder, invoke_in):
    code, out, err = invoke_in(folder, "compare", "scores.parquet", "--prob", "p", "--prob", "better", "--json")
    assert code == 0, err
    assert json.loads(out)


BAD = {
    "missing file": (("measure", "nothing.parquet"), "No file matches 'nothing.parquet'"),
    "wrong column": (
        ("measure", "scores.parquet", "--prob", "q"),
        "--prob names the column 'q', which the source does not have. It has 'y', 'p'",
    ),
    "truncated": (("measure", "broken.parquet"), "Cannot read"),
    "header only": (("measure", "header.csv"), "has no rows"),
    "out of range": (
        ("measure", "range.csv"),
        "Column 'p' (--prob) is outside [0, 1] in 1 of 2 rows (first: row 2 of 'range.csv')",
    ),
    "missing value": (("measure", "holes.csv"), "Column 'p' (--prob) is missing in 1 of 2 rows"),
    "unknown map": (("recalibrate", "scores.parquet", "--method", "magic"), "--method must be auto or one of"),
    "no spread": (("report", "scores.parquet", "--mean", "mean"), "--mean needs --std"),
    "no prior": (("report", "scores.parquet", "--labelled", "1"), "--labelled needs --prior"),
    "bad quantile": (("report", "scores.parquet", "--quantiles", "low=std"), "--quantiles takes LEVEL=COLUMN"),
    "one model": (("compare", "scores.parquet", "--prob", "p"), "Name the predictions of two models"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_errors_are_one_sentence_with_the_remedy(folder, invoke_in, arguments, message):
    (folder / "broken.parquet").write_bytes((folder / "scores.parquet").read_bytes()[:2000])
    (folder / "header.csv").write_text("y,p\n")
    (folder / "range.csv").write_text("y,p\n0,0.5\n1,1.5\n")
    (folder / "holes.csv").write_text("y,p\n0,0.5\n1,\n")
    code, _, text = invoke_in(folder, *arguments)
    assert code == 2
    assert message in " ".join(text.split())
    assert "Traceback" not in text


def test_debug_shows_the_traceback(folder, invoke_in):
    assert "Traceback" in invoke_in(folder, "measure", "nothing.parquet", "--debug")[2]


def test_an_option_that_is_given_twice_is_refused(folder, invoke_in):
    for words in (("--truth", "y", "--truth", "p"), ("--truth=y", "--truth=p"), ("--title", "--truth", "--title=b")):
        code, out, err = invoke_in(folder, "report", "scores.csv", *words)
        assert (code, out) == (2, "")
        assert "is given 2 times, but takes one value." in err
    code, _, err = invoke_in(
        folder, "measure", "scores.csv", "--by", "country", "--by", "country,y", "--where", "--truth"
    )
    assert "times" not in err


def test_a_gate_does_not_choose_among_columns(folder, invoke_in):
    FRAME.assign(score=P).to_csv(folder / "two.csv", index=False)
    for words in (("measure", "two.csv", "--fail-above", "0.5"), ("test", "two.csv", "--fail")):
        code, _, err = invoke_in(folder, *words)
        assert code == 2
        assert "Columns 'p', 'score' could each be --prob: a gate needs --prob NAME." in err
    code, _, err = invoke_in(folder, "measure", "two.csv")
    assert code == 0
    assert "Taking column 'p' as --prob; 'score' would fit too: say --prob NAME." in err


def test_a_map_that_is_not_there_is_named(folder, invoke_in):
    code, _, err = invoke_in(folder, "apply", "none.json", "scores.csv")
    assert code == 2
    assert "There is no map 'none.json': make one with calibrant recalibrate" in err
