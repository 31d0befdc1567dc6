"""Training risks and the logistic model."""

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


@pytest.mark.parametrize("loss", ["logistic", "sigmoid"])
def test_torch_losses_have_the_same_values_and_step_back_from_overfitting(loss):
    torch = pytest.importorskip("torch")
    from calibrant.pu import torch_risks

    rng = np.random.default_rng(1)
    p, u = rng.normal(1, 1, 50), rng.normal(0, 2, 200)
    tensors = [torch.tensor(values) for values in (p, u)]
    pairs = [("upu_loss", pu.upu_risk), ("nnpu_loss", pu.nnpu_risk), ("imbalanced_nnpu_loss", pu.imbalanced_nnpu_risk)]
    for name, risk in pairs:
        value = getattr(torch_risks, name)(*tensors, prior=0.3, loss=loss)
        assert float(value) == pytest.approx(risk(p, u, prior=0.3, loss=loss))
    fitted, others = (torch.tensor([value] * 2, dtype=torch.float64, requires_grad=True) for value in (4.0, -4.0))
    value = torch_risks.nnpu_loss(fitted, others, prior=0.9, loss=loss)  # the part of the negatives is below zero
    expected = pu.nnpu_risk([4.0, 4.0], [-4.0, -4.0], prior=0.9, loss=loss)
    assert value.detach().item() == pytest.approx(expected)
    value.backward()
    assert float(others.grad[0]) < 0  # ascent on the loss of unlabeled rows as negatives


def test_the_logistic_model_finds_the_true_coefficients():
    rng = np.random.default_rng(2)
    n = 20_000
    y = rng.random(n) < 0.5
    x = rng.normal(0, 1, n) + 2 * y - 1  # P(y = 1 | x) = sigmoid(2 x)
    positives = rng.normal(1, 1, 5000)
    features = np.concatenate([positives, x])[:, None]
    marks = np.concatenate([np.ones(5000), np.zeros(n)])
    model = pu.PULogistic(prior=0.5, ridge=1e-6).fit(features, marks)
    assert model.coef_[0, 0] == pytest.approx(2, abs=0.15)
    assert model.intercept_[0] == pytest.approx(0, abs=0.1)
    assert model.predict_proba(x[:, None])[:, 1].mean() == pytest.approx(0.5, abs=1e-3)
    again = pu.PULogistic(prior=0.5, ridge=1e-6).fit(features, 2 * marks - 1)
    np.testing.assert_allclose(again.coef_, model.coef_)
    labelled = y & (rng.random(n) < 0.4)
    single = pu.PULogistic(prior=0.5, ridge=1e-6, scenario="single-sample").fit(x[:, None], labelled)
    assert single.coef_[0, 0] == pytest.approx(2, abs=0.2)
    assert single.score(x[:, None], y) > 0.83


def test_the_logistic_model_takes_sparse_rows_and_refuses_wrong_marks():
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(3)
    features, marks = rng.random((100, 3)), np.arange(100) < 30
    dense = pu.PULogistic(prior=0.5).fit(features, marks)
    thin = pu.PULogistic(prior=0.5).fit(sparse.csr_matrix(features), marks)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="must be 1 for labelled positives"):
        pu.PULogistic().fit(features, np.arange(100) % 3 + 1)
