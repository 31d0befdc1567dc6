"""The reproduction of the bias paper runs, with few repeats, and finds what it looks for."""

import csv

import numpy as np
import pytest

from calibrant import simulate as sim
from reproduce import bias, bias_choice, bias_figures, bias_fits, bias_grid
from reproduce import bias_anchors as anchors

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def data(shared_data):
    folder = shared_data / "classification"
    if not (folder / "kangsepp_densenet40_cifar10.npz").exists():
        pytest.skip(f"the real predictions are not at {folder}")
    return folder


def test_the_grid_is_compared_with_its_anchors_and_drawn(tmp_path):
    worlds = [sim.PAPER_WORLDS[name] for name in ("resnet110_c10", "resnet110_c100", "resnet152_imgnet")]
    estimators = {name: bias_grid.ESTIMATORS[name] for name in ("ew_bin", "em_sweep", "kde")}
    table = sim.bias_table(estimators, worlds, anchors.SIZES, repeats=5)
    away = bias_grid.deviations(table, anchors.FIGURE_4)
    assert len(away) == 2 * 3 * 7
    bias_grid.draw(table, tmp_path / "figure4.png", "few repeats")
    assert (tmp_path / "figure4.png").stat().st_size > 1000


@pytest.mark.parametrize("name", ["figure_1", "figure_2", "figure_14"])
def test_figures_write_their_numbers_and_pictures(name, tmp_path):
    lines = getattr(bias_figures, name)(tmp_path, 20)
    assert any(line.startswith("![") for line in lines)
    (table,) = tmp_path.glob("*.csv")
    with table.open(newline="") as file:
        assert len(list(csv.reader(file))) > 5


def test_the_published_fits_are_explained(data):
    assert any("1.9824, 0.0397 | 1.9824, 0.0397" in line for line in bias_fits.table_2(data))
    assert any("3640.32, 3640.32, 3640.32, 3640.32" in line for line in bias_fits.table_3(data))


def test_scores_are_rounded_as_by_log_sum_exp_in_single_precision(data):
    logits, _ = bias_fits.densenet(data, "test")
    exact = bias_fits.softmax_top(logits.astype(np.float64))
    top = logits.max(axis=1)
    some = (top > 16) & (top < 32)
    theirs = bias_fits.softmax_top_by_log_sum_exp(logits)[some]
    ours = bias_fits.rounded_by_log_sum_exp(exact[some], bias_fits.UNITS[0])
    assert np.abs(ours - theirs).max() < 3 * bias_fits.UNITS[0]
    assert np.mean(ours == 1) == pytest.approx(np.mean(theirs == 1), abs=0.01)
    assert np.mean(exact[some].astype(np.float32) == 1) < np.mean(theirs == 1) - 0.03


def test_parts_made_again_replace_those_of_the_same_title():
    page = "# Page\n\nhead\n\n## A\n\nold\n\n## B\n\nkept"
    assert bias.replaced(page, ["", "## A", "", "new"]) == [
        "# Page",
        "",
        "head",
        "",
        "## A",
        "",
        "new",
        "",
        "## B",
        "",
        "kept",
    ]


def test_the_real_error_of_table_4_is_the_printed_one(data, tmp_path, monkeypatch):
    monkeypatch.setattr(bias_fits, "REFITS", 3)
    lines = bias_fits.table_4(data, tmp_path, 2)
    assert any("| 6.70 | 6.700 |" in line for line in lines)


def test_a_choice_is_one_of_the_three_maps(data):
    logits, labels, size = bias_choice.data_sets(data)["cy_cifar10_resnet20"]
    found = bias_choice.choices(logits, labels, slice(None, size), slice(size, None))
    assert set(found.values()) <= set(bias_choice.METHODS)
    assert set(found) == {"truth", *bias_choice.CHOOSERS}
