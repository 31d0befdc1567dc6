"""The training risks in PyTorch: values of the NumPy risks, and the gradients of the papers."""

import numpy as np
import pytest
from scipy.special import expit

from reproduce import positive_unlabeled_training as training

torch = pytest.importorskip("torch")
from reproduce import positive_unlabeled_losses as losses  # noqa: E402 - needs torch

P, U = np.random.default_rng(1).normal(1, 1, 50), np.random.default_rng(2).normal(0, 2, 200)


def leaves(*columns):
    return [torch.tensor(column, dtype=torch.float64, requires_grad=True) for column in columns]


def slopes(z, loss):
    """Derivative of the loss of a negative at logit z; that of a positive is minus this at -z."""
    return expit(z) if loss == "logistic" else expit(z) * expit(-z)


@pytest.mark.parametrize("loss", ["logistic", "sigmoid"])
def test_torch_losses_have_the_same_values_and_step_back_from_overfitting(loss):
    rng = np.random.default_rng(1)
    p, u = rng.normal(1, 1, 50), rng.normal(0, 2, 200)
    tensors = [torch.tensor(values) for values in (p, u)]
    pairs = [
        ("upu_loss", training.upu_risk),
        ("nnpu_loss", training.nnpu_risk),
        ("imbalanced_nnpu_loss", training.imbalanced_nnpu_risk),
    ]
    for name, risk in pairs:
        value = getattr(losses, name)(*tensors, prior=0.3, loss=loss)
        assert float(value) == pytest.approx(risk(p, u, prior=0.3, loss=loss))
    fitted, others = (torch.tensor([value] * 2, dtype=torch.float64, requires_grad=True) for value in (4.0, -4.0))
    value = losses.nnpu_loss(fitted, others, prior=0.9, loss=loss)  # the part of the negatives is below zero
    expected = training.nnpu_risk([4.0, 4.0], [-4.0, -4.0], prior=0.9, loss=loss)
    assert value.detach().item() == pytest.approx(expected)
    value.backward()
    assert float(others.grad[0]) < 0  # ascent on the loss of unlabeled rows as negatives


@pytest.mark.parametrize("loss", ["logistic", "sigmoid"])
def test_gradients_are_the_derivatives_of_the_risks(loss):
    prior = 0.3
    positive, unlabeled = leaves(P, U)
    losses.upu_loss(positive, unlabeled, prior=prior, loss=loss).backward()
    by_hand = prior * (-slopes(-P, loss) - slopes(P, loss)) / len(P)
    np.testing.assert_allclose(positive.grad.numpy(), by_hand, rtol=1e-9)
    np.testing.assert_allclose(unlabeled.grad.numpy(), slopes(U, loss) / len(U), rtol=1e-9)


def test_without_overfitting_the_gradient_of_nnpu_is_that_of_upu():
    first, second = leaves(P, U), leaves(P, U)
    losses.nnpu_loss(*first, prior=0.3, loss="logistic").backward()
    losses.upu_loss(*second, prior=0.3, loss="logistic").backward()
    for one, other in zip(first, second, strict=True):
        np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "sigmoid"])
@pytest.mark.parametrize(("beta", "gamma"), [(0.0, 1.0), (0.1, 0.5)])
def test_an_overfitted_batch_steps_back_along_the_part_of_the_negatives(loss, beta, gamma):
    p, u, prior, target = np.array([4.0, 3.0]), np.array([-4.0, -3.0, -5.0]), 0.9, 0.5
    positive, unlabeled = leaves(p, u)
    value = losses.imbalanced_nnpu_loss(
        positive, unlabeled, prior=prior, target_prior=target, loss=loss, beta=beta, gamma=gamma
    )
    factor = (1 - target) / (1 - prior)
    gain = np.mean(np.logaddexp(0, -p) if loss == "logistic" else expit(-p))
    assert value.item() == pytest.approx(target * gain - factor * beta)
    value.backward()
    np.testing.assert_allclose(unlabeled.grad.numpy(), -gamma * factor * slopes(u, loss) / 3, rtol=1e-9)
    np.testing.assert_allclose(positive.grad.numpy(), gamma * factor * prior * slopes(p, loss) / 2, rtol=1e-9)


def test_a_part_of_the_negatives_above_minus_beta_is_kept():
    p, u = np.array([1.0, 1.0]), np.array([-1.0, 0.0])
    rest = np.mean(expit(u)) - 0.7 * np.mean(expit(p))
    assert -0.2 < rest < 0
    kept = losses.nnpu_loss(*leaves(p, u), prior=0.7, beta=0.2)
    assert kept.item() == pytest.approx(0.7 * np.mean(expit(-p)) + rest)
    cut = losses.nnpu_loss(*leaves(p, u), prior=0.7)
    assert cut.item() == pytest.approx(0.7 * np.mean(expit(-p)))
