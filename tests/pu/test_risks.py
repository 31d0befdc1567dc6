"""Training risks, written out."""

import numpy as np
import pytest
from scipy.special import expit, log_expit

from calibrant import pu


@pytest.mark.parametrize("loss", ["logistic", "sigmoid"])
def test_risks_are_their_formulas(loss):
    rng = np.random.default_rng(0)
    p, u = rng.normal(1, 1, 50), rng.normal(0, 2, 200)

    def of(z, label):
        return -log_expit(z if label else -z) if loss == "logistic" else expit(-z if label else z)

    gain, rest = 0.3 * of(p, 1).mean(), of(u, 0).mean() - 0.3 * of(p, 0).mean()
    assert pu.upu_risk(p, u, prior=0.3, loss=loss) == pytest.approx(gain + rest)
    assert pu.nnpu_risk(p, u, prior=0.3, loss=loss) == pytest.approx(gain + max(rest, 0))
    imbalanced = 0.5 * of(p, 1).mean() + 0.5 / 0.7 * max(rest, 0)
    assert pu.imbalanced_nnpu_risk(p, u, prior=0.3, loss=loss) == pytest.approx(imbalanced)
    assert pu.nnpu_risk([9.0, 9.0], [-9.0, 9.0], prior=0.9, loss=loss) >= 0
    with pytest.raises(ValueError, match="loss must be"):
        pu.upu_risk(p, u, prior=0.3, loss="hinge")
