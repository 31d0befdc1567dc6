"""The script that compares two models on the same questions."""

import numpy as np
import pytest

from reproduce import confidence_pairs


def test_truths_are_means_over_confidences():
    rng = np.random.default_rng(0)
    for world, models in confidence_pairs.WORLDS.items():
        made = confidence_pairs.answers(rng, world, 40_000, 4, 0.5)
        for model, data in zip(models, made, strict=True):
            gap = np.abs(data.confidence - confidence_pairs.CHANCES[model[0]](data.confidence))
            assert gap.mean() == pytest.approx(confidence_pairs.true_error(model, 1.0), abs=0.01)
            expected = confidence_pairs.CHANCES[model[0]](data.confidence).mean()
            assert data.correct.mean() == pytest.approx(expected, abs=0.03)


def test_a_cell_and_the_page():
    row = confidence_pairs.cell("both calibrated", 2, 300, 1, 0.5, 3)
    assert row["truth"] == 0
    rows = [{**dict(zip(confidence_pairs.KEYS, ("both calibrated", 2, 300, 1, 0.5, 3), strict=True)), **row}]
    assert "below 0.93 in" in confidence_pairs.page(rows)
