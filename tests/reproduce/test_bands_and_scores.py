"""The study of bands, scores of few events, costs, comparisons and sample sizes."""

import numpy as np
from reproduce.bands_and_scores import band, few_events, three_models


def test_each_part_gives_a_line():
    assert band("one jump", 2000, 2)["missed"] == 0
    found = few_events("no ranking", "clustered", 11, 3)
    assert found["failed"] == 0
    assert np.isfinite([found["auc"], found["brier"], found["log_loss"]]).all()
    assert 0 <= three_models(200, 2)["any_rejected"] <= 1
