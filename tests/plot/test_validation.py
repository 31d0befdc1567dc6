"""The figure of a validation."""

import numpy as np
import pytest

import calibrant as cal

pytest.importorskip("matplotlib")


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 4, 600)
    data = cal.Binary(rng.random(600) < p, p)
    numbers = [cal.interval(one, data) for one in (cal.observed_expected, cal.calibration_slope)]
    return cal.reliability_curve(data), cal.net_benefit(data), [*numbers, cal.auc(data)]


@pytest.mark.parametrize(("width", "inches"), [("single", 3.4), ("double", 7.0)])
def test_it_has_the_width_of_a_column_and_all_numbers(parts, width, inches, unchanged_settings):
    import matplotlib.pyplot as plt

    figure = cal.plot.validation_figure(*parts, width=width)
    assert figure.get_size_inches()[0] == inches
    first, second = figure.axes
    words = first.texts[0].get_text().splitlines()
    assert [line.split(" (95%")[0] for line in words[:2]] == [f"{e.name} {e.value:.2f}" for e in parts[2][:2]]
    assert words[2] == f"AUC {parts[2][2].value:.2f}"
    assert second.get_lines()[0].get_ydata() == pytest.approx(parts[1].value)
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["A", "B"]
    plt.close(figure)


@pytest.mark.parametrize("width", ["single", "double"])
def test_nothing_is_written_over_anything_else(parts, width, unchanged_settings):
    import matplotlib.pyplot as plt

    figure = cal.plot.validation_figure(*parts, width=width)
    figure.canvas.draw()
    whole = figure.bbox
    boxes = []
    for panel in figure.axes:
        texts = [*panel.texts, *(title for title in (panel._left_title, panel.xaxis.label) if title.get_text())]
        boxes += [panel.get_window_extent(), panel.get_legend().get_window_extent()]
        boxes += [text.get_window_extent() for text in texts]
    for k, box in enumerate(boxes):
        assert box.x0 >= whole.x0
        assert box.x1 <= whole.x1
        assert not any(box.overlaps(other) for other in boxes[:k])
    plt.close(figure)


def test_it_draws_on_given_axes_and_refuses_other_widths(parts):
    from matplotlib.figure import Figure

    given = Figure()
    assert cal.plot.validation_figure(*parts[:2], ax=given.subplots(1, 2)) is given
    assert not given.axes[0].texts
    with pytest.raises(ValueError, match="width must be one of"):
        cal.plot.validation_figure(*parts, width="triple")


@pytest.mark.parametrize(("width", "size"), [("single", (3.4, 8.0)), ("double", (7.0, 4.2))])
def test_sizes_of_journals(parts, width, size, unchanged_settings):
    import matplotlib.pyplot as plt

    figure = cal.plot.validation_figure(*parts, width=width)
    assert tuple(figure.get_size_inches()) == size
    first = figure.axes[0]
    numbers = first.texts[0]
    assert (first.xaxis.label.get_fontsize(), numbers.get_fontsize()) == (8, 7)
    assert (numbers.xyann, numbers._linespacing) == ((0, 4), 1.3)
    plt.close(figure)
