import math

import numpy as np
import pytest
from reproduce.monitoring import CALIBRATED, Streams, day_sums, reference_of
from scipy.special import expit

import calibrant as cal
from calibrant.monitor.bets import Bets


def test_streams_watched_at_once_give_the_evidence_of_the_monitor():
    rng = np.random.default_rng(0)
    first = expit(rng.normal(-1, 1.2, (3, 50)))
    streams = Streams(3, Bets.on_scores(reference_of(first[1]), 0.1, 0.0), limit=math.log(20))
    monitor = cal.Monitor(tolerance=0.1, reference=first[1])
    for day in range(70):
        p = first if day == 0 else expit(rng.normal(-1, 1.2, (3, 50)))
        y = (rng.random(p.shape) < p).astype(float)
        streams.add(day, day_sums(y, p))
        streams.look(day)
        status = monitor.update(y[1], p[1], time=day)
        assert streams._bound()[1] >= streams.evidence()[1]
    assert streams.evidence()[1] == pytest.approx(status.evidence * math.log(10), abs=1e-4)
    assert (streams.alarm[1] >= 0) == status.alarm


@pytest.mark.parametrize("world", CALIBRATED)
def test_worlds_that_are_called_calibrated_are(world):
    make, tolerance = CALIBRATED[world]
    p, truth, _ = make(np.random.default_rng(1), 5, 2000, np.zeros(2000))
    odds = (truth / (1 - truth)).mean() / (p / (1 - p)).mean() if tolerance else 1.0
    assert odds <= 1 + tolerance + 1e-9
    if not tolerance:
        assert truth.mean() == pytest.approx(p.mean(), abs=5 * truth.std() / math.sqrt(truth.size / 10) + 1e-12)
