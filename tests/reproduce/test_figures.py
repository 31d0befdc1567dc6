"""Figures of the four papers are drawn from stored numbers, and show them."""

import numpy as np
import pytest
from reproduce.papers import RESULTS
from reproduce.variational import Store

import calibrant as cal
from reproduce import bias_curves, positive_unlabeled_figures, variational_figures

pytest.importorskip("matplotlib")


def test_the_variational_figures(tmp_path):
    store = Store(RESULTS / "variational.csv")
    store.rows = [row for row in store.rows if row["part"] == "figure1"]
    names = variational_figures.draw_all(store, tmp_path)
    assert names == ["variational_figure2.png", "variational_figure1.png"]
    assert all((tmp_path / name).stat().st_size > 10_000 for name in names)


def test_stored_rows_of_the_unlabeled_figures_are_drawn(tmp_path):
    rows = positive_unlabeled_figures.stored_rows(RESULTS / "positive_unlabeled.csv")
    assert {row[0] for row in rows} == {1, 2, 3}
    priors = {"less": 0.5, "better": 0.5}
    names = positive_unlabeled_figures.draw_all([row for row in rows if row[1] in priors], tmp_path, priors)
    assert [name[-11:] for name in names] == ["figure1.png", "figure2.png", "figure3.png"]
    assert all((tmp_path / name).stat().st_size > 10_000 for name in names)


def test_bands_are_the_stored_quantiles():
    plt = variational_figures.pyplot()
    figure, ax = plt.subplots()
    rows = [[1, "w", "arm", n, 0.1, 0.01, 0.05, 0.2, 0.1] for n in (10, 100)]
    positive_unlabeled_figures._lines_with_bands(ax, rows)
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(0.05)
    assert heights.max() == pytest.approx(0.2)
    plt.close(figure)


def test_the_worlds_of_the_bias_paper_and_which_data_are_at_hand(tmp_path):
    lines = bias_curves.worlds(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"figure1_left.svg", "figure2a.svg", "figure3ab.svg"}
    assert sum("| none |" in line for line in lines) == 6
    assert sum("fitted again" in line for line in lines) == 4


def test_bias_by_number_of_bins(tmp_path, monkeypatch):
    monkeypatch.setattr(bias_curves, "NUMBERS", (2, 64))
    monkeypatch.setattr(bias_curves, "SIZES", (800,))
    lines = bias_curves.figures_7_to_12(tmp_path, 20)
    assert {f"figure{number}.png" for number in range(7, 13)} <= {path.name for path in tmp_path.iterdir()}
    row = next(line for line in lines if line.startswith("| resnet110_c10 | ew_bin"))
    few, many = (float(cell.split(",")[0]) for cell in row.split("|")[3:5])
    assert few < -3 < 1 < many


@pytest.mark.slow
def test_the_figures_of_the_regression_paper(tmp_path):
    pytest.importorskip("torch")
    from reproduce import regression_figures

    rng = np.random.default_rng(0)

    def forecasts(columns):
        shape = (100, columns) if columns > 1 else 100
        spread = rng.uniform(0.5, 2, shape)
        return cal.Gaussian(spread * rng.normal(size=shape), np.zeros(shape), spread)

    sets = {name: [forecasts(1), forecasts(1)] for name in ("random", "learned", "true")}
    boxes = {name: [forecasts(4), forecasts(4)] for name in ("trained", "random")}
    names = regression_figures.synthetic_figures(sets, tmp_path) + regression_figures.box_figures(boxes, tmp_path)
    assert sorted(names) == [f"regression_figure_{number}.png" for number in range(1, 6)]
    assert all((tmp_path / name).stat().st_size > 10_000 for name in names)
