r"""Kernel estimates on the simplex, averaged with a multiclass map: errors that depend on the whole probability vector.

With q the map and :math:`k_h(p, r) = \exp(-|p - r|^2 / 2h^2)` for the widths h = .12, .06 and .03,

.. math:: m_h(p) = \frac{\sum_j w_j k_h(p, p_j) y_j + \varepsilon q(p)}{\sum_j w_j k_h(p, p_j) + \varepsilon}, \qquad
          g = (1 - s)\, q + s \sum_h v_h m_h .

The weights v come from EM on training rows, which are left out of their own estimates (with all rows of their group).
The share s is the weight of all kernels times the posterior probability that the average is better than q at all, from
its gain in log-likelihood and in Brier score on the same rows. No label of a row that is predicted is used anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Codes, Floats, Reals, Singles
from calibrant.numerics.special import expit

#: The widest kernel and their number; each is the fourth power of the one before, of half its width. Test:
#: tests/numerics/test_simplex_kernels.py::test_the_estimates_written_out.
WIDEST, WIDTHS = 0.12, 3
#: Rows of the map itself in each estimate, for places that no row is near. Derived: a thousandth of a row changes no
#: estimate from a row or more by over 0.1 %.
OWN_ROWS = 1e-3
#: Prior weights of the map and of all kernels together, and the rows that they are worth. Test:
#: tests/numerics/test_simplex_kernels.py::test_weights_are_those_of_the_frozen_sample.
PRIOR, PRIOR_ROWS = (0.7, 0.3), 20.0
#: Training rows from which the weights come, and steps of EM. Speed: the least certain rows tell most; more of either
#: moves the weights by less than their standard error.
EM_ROWS, EM_STEPS = 1000, 100
#: Units of log-likelihood that the prior weights may cost without the average being doubted. Test:
#: tests/numerics/test_simplex_kernels.py::test_weights_are_those_of_the_frozen_sample.
HANDICAP = 1.0
#: With less weight of all kernels, the map is taken as it is. Speed: it then costs nothing, and moves probabilities by
#: less than 3 % of the distance between kernels and map.
LEAST_SHARE = 0.03


@dataclass(frozen=True, eq=False)
class SimplexKernels:
    """Training rows, weights at their observed classes, and the weights of the map and of each kernel estimate."""

    at: Singles
    outcome: Singles
    share: Floats

    @classmethod
    def none(cls, classes: int) -> Self:
        """The map as it is."""
        nothing = np.empty((0, classes), np.float32)
        return cls(nothing, nothing, np.array([1.0]))

    @classmethod
    def fit(
        cls, p: Singles, labels: Codes, weight: Singles, logs: Reals, own: NDArray[np.intp], group: Codes | None
    ) -> Self:
        """From training rows, and the log probabilities of the map at those at the places `own` among them."""
        if not len(own):
            return cls.none(p.shape[1])
        outcome = np.zeros(p.shape, np.float32)
        outcome[np.arange(len(p)), labels] = weight
        if len(own) > EM_ROWS:
            unsure = np.argsort(p[own].max(axis=1), kind="stable")[:EM_ROWS]
            own, logs = own[unsure], logs[unsure]
        same = own[:, None] == np.arange(len(p)) if group is None else group[own][:, None] == group
        members = [np.exp(logs), *_estimates(p[own], p, outcome, np.exp(logs), same)]
        share = _shares(members, labels[own], weight[own].astype(np.float64))
        return cls(p, outcome, share) if len(share) > 1 else cls.none(p.shape[1])

    def averaged(self, q: Reals, p: Singles) -> Reals:
        """Probabilities q of the map at the predicted probabilities p, averaged with the kernel estimates."""
        if len(self.share) == 1:
            return q
        result = q * q.dtype.type(self.share[0])
        for share, estimate in zip(self.share[1:].tolist(), _estimates(p, self.at, self.outcome, q), strict=True):
            result += q.dtype.type(share) * estimate
        return result


def _estimates(
    x: Singles, at: Singles, outcome: Singles, q: Reals, without: NDArray[np.bool_] | None = None
) -> Iterator[Reals]:
    """The estimate of each width, widest first; pairs marked in `without` do not count."""
    few = q.dtype.type(OWN_ROWS)
    for kernel in _kernels(x, at, without):
        mass = kernel @ outcome
        yield (mass + few * q) / (mass.sum(axis=1, keepdims=True) + few)


def _kernels(x: Singles, at: Singles, without: NDArray[np.bool_] | None) -> Iterator[Singles]:
    distance = np.einsum("nk,nk->n", x, x)[:, None] + np.einsum("rk,rk->r", at, at)
    distance -= 2 * (x @ at.T)
    kernel = np.exp(np.maximum(distance, 0) * np.float32(-0.5 / WIDEST**2))
    if without is not None:
        kernel[without] = 0
    yield kernel
    for _ in range(WIDTHS - 1):
        kernel = np.square(np.square(kernel))
        yield kernel


def _shares(members: list[Reals], labels: Codes, weight: Floats) -> Floats:
    """Weights of the map and of the kernels; the map alone where the average is not believed."""
    place = np.arange(len(labels))
    hits = np.maximum(np.stack([member[place, labels] for member in members], axis=1), 1e-9).astype(np.float64)
    found = _em_weights(hits, weight)
    q, mixed = members[0], sum(one * member for one, member in zip(found.tolist(), members, strict=True))
    likelihood = float(weight @ np.log(hits @ found / hits[:, 0]))
    brier = ((q - mixed) * (q + mixed)).sum(axis=1) - 2 * (q - mixed)[place, labels]
    gain = min(likelihood, float(weight @ brier))
    kernels = found[1:] * float(expit(np.array(min(gain + HANDICAP, 500.0))))
    return np.concatenate([[1 - kernels.sum()], kernels]) if kernels.sum() >= LEAST_SHARE else np.array([1.0])


def _em_weights(hits: Floats, weight: Floats) -> Floats:
    """Weights of a mixture from the probability that each member gave to what was observed."""
    prior = np.array([PRIOR[0], *([PRIOR[1] / WIDTHS] * WIDTHS)])
    found = prior
    for _ in range(EM_STEPS):
        part = hits * found
        part *= (weight / part.sum(axis=1))[:, None]
        found = part.sum(axis=0) + prior * PRIOR_ROWS
        found /= found.sum()
    return found
