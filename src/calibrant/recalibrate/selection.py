"""The map with the lowest cross-validated loss, or a convex mixture of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone

from calibrant.data import validation
from calibrant.numerics.arrays import Codes, Floats
from calibrant.numerics.folds import fold_counts, fold_of_rows
from calibrant.recalibrate.base import Identity, Recalibrator
from calibrant.recalibrate.inputs import BinomialCells, Scores
from calibrant.recalibrate.isotonic import Isotonic
from calibrant.recalibrate.logistic import Beta, Platt, Quadratic, Temperature
from calibrant.recalibrate.matrix import StructuredMatrixScaling, StructuredVectorScaling
from calibrant.recalibrate.spline import Spline
from calibrant.recalibrate.wrappers import OneVsRest, fitted, predicted
from calibrant.table.bintable import BinTable

Loss = Literal["log_loss", "brier"]

#: Structured matrix scaling has K^2 parameters; beyond this many classes its cross-validation costs minutes.
_MATRIX_CLASSES = 30


@dataclass(kw_only=True, eq=False, repr=False)
class Auto(Recalibrator):
    r"""The best of several maps by cross-validated proper loss, or a convex mixture of them.

    Each candidate is fitted on all folds but one and scored on that one. `combine="choose"` takes the candidate with
    the lowest mean loss; `combine="stack"` the mixture :math:`\sum_m a_m q_m`, a on the simplex, with the lowest
    loss. What is chosen is then fitted on all rows. Calibration errors are never used for the choice: they do not
    see the information a map destroys.

    Parameters
    ----------
    candidates : sequence of Recalibrator, optional
        `Identity` is always among them. By default the maps that lead public benchmarks: temperature, Platt, beta,
        quadratic and spline for one event; temperature, structured vector and matrix scaling, one-vs-rest beta
        and isotonic for more classes.
    loss : {"log_loss", "brier"}
    combine : {"choose", "stack"}
    cautious : bool
        Keep the predictions as they are unless the choice beats them by more than one standard error.
    folds : int
        Shuffled, not stratified.
    seed : int
        Of the folds.
    input, laplace, clip
        As for all maps: see `Recalibrator`; those of the candidates are not used, but for their `laplace`.

    Attributes
    ----------
    results_ : list of dict
        One row per candidate, best first: its `name`, cross-validated `loss` with `loss_se`, its `gain` over the
        identity with the standard error `gain_se` of the paired difference, and its `weight` in the result.
    maps_, weights_ : list of Recalibrator, array
        What is used, and how much of each.
    changed_ : bool
        Whether anything but the identity is used.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p**2  # too high by far
    >>> auto = Auto().fit(p, y)
    >>> auto.results_[0]["gain"] > 5 * auto.results_[0]["gain_se"]
    True
    >>> auto.predict_proba([0.5])[:, 1].round(2)
    array([0.23])
    """

    candidates: Sequence[Recalibrator] | None = field(default=None, kw_only=False)
    loss: Loss = "log_loss"
    combine: Literal["choose", "stack"] = "choose"
    cautious: bool = True
    folds: int = 5
    seed: int = 0

    def fit_table(self, table: BinTable) -> Self:
        """Fit to a table of one event. Folds are drawn from the counts of the cells, which must be whole numbers."""
        cells = BinomialCells.of_table(table)
        zeros, ones = cells.weight - cells.positive, cells.positive
        if not (np.allclose(zeros, np.round(zeros), atol=1e-6) and np.allclose(ones, np.round(ones), atol=1e-6)):
            message = (
                "Auto draws its folds from the rows of each cell, so the table must hold whole counts (no weights)."
            )
            raise ValueError(message)
        self._set_one_event(cells.total)
        counts = fold_counts(np.stack([zeros, ones]), [1] * self.folds, seed=validation.seed(self.seed))
        fold, outcome, cell = np.nonzero(counts)
        self._select(cells.scores.take(cell), outcome, counts[fold, outcome, cell], fold)
        return self

    def _fit(self, scores: Scores, codes: Codes, weight: Floats | None) -> None:
        self._select(
            scores, codes, weight, fold_of_rows(len(scores), [1] * self.folds, seed=validation.seed(self.seed))
        )

    def _select(self, scores: Scores, codes: Codes, weight: Floats | None, fold: Codes) -> None:
        self._check()
        templates = self._templates(scores.classes)
        held_out = [_held_out(template, scores, codes, weight, fold) for template in templates]
        mass = np.ones(len(scores)) if weight is None else weight
        losses = np.stack([row_losses(p, codes, self.loss) for p in held_out])
        means = losses @ mass / mass.sum()
        if self.combine == "stack":
            shares = stacking_weights(held_out, codes, mass, self.loss)
        else:
            shares = np.eye(len(templates))[int(np.argmin(means))]
        mixture = row_losses(np.einsum("m,mik->ik", shares, np.stack(held_out)), codes, self.loss)
        gain, error = _mean_and_error(losses[0] - mixture, mass)
        if self.cautious and not gain > error:
            shares = np.eye(len(templates))[0]
        used = np.flatnonzero(shares)
        self.maps_ = [fitted(templates[m], scores, codes, weight) for m in used]
        self.weights_ = shares[used] / shares[used].sum()
        self.changed_ = bool(shares[0] < 1)
        self.results_ = _results(templates, losses, shares, mass)

    def _predict(self, scores: Scores) -> Floats:
        mixture = np.zeros((len(scores), scores.classes))
        for share, inner in zip(self.weights_, self.maps_, strict=True):
            mixture += share * predicted(inner, scores)
        return mixture

    def _templates(self, classes: int) -> list[Recalibrator]:
        """The candidates, the identity first."""
        chosen = default_candidates(classes) if self.candidates is None else list(self.candidates)
        others = [clone(template) for template in chosen if not isinstance(template, Identity)]
        return [Identity(), *others]

    def _check(self) -> None:
        if self.loss not in ("log_loss", "brier"):
            message = f"loss must be 'log_loss' or 'brier' (a calibration error cannot choose), got {self.loss!r}."
            raise ValueError(message)
        if self.combine not in ("choose", "stack"):
            message = f"combine must be 'choose' or 'stack', got {self.combine!r}."
            raise ValueError(message)
        if self.folds < 2:
            message = f"folds must be at least 2, got {self.folds!r}."
            raise ValueError(message)


def default_candidates(classes: int) -> list[Recalibrator]:
    """The maps that `Auto` compares by default."""
    if classes == 2:
        return [Temperature(), Platt(), Beta(), Quadratic(), Spline()]
    maps: list[Recalibrator] = [Temperature(laplace=1.0), StructuredVectorScaling()]
    if classes <= _MATRIX_CLASSES:
        maps.append(StructuredMatrixScaling())
    return [*maps, OneVsRest(Beta()), OneVsRest(Isotonic())]


def row_losses(p: Floats, codes: Codes, loss: Loss) -> Floats:
    """Loss of each row: minus the log of the probability of the observed class, or the squared distance to it."""
    hit = p[np.arange(len(p)), codes]
    if loss == "brier":
        squares: Floats = np.einsum("ij,ij->i", p, p) - 2 * hit + 1
        return squares / 2 if p.shape[1] == 2 else squares
    return -np.log(np.maximum(hit, np.finfo(np.float64).tiny))


def stacking_weights(held_out: Sequence[Floats], codes: Codes, mass: Floats, loss: Loss) -> Floats:
    """The point of the simplex whose mixture of held-out probabilities has the lowest mean loss (a convex problem)."""
    from scipy.optimize import minimize

    number, share = len(held_out), mass / mass.sum()
    if loss == "brier":
        gaps = np.stack(held_out)
        gaps[:, np.arange(len(codes)), codes] -= 1
        gram = np.einsum("aik,bik,i->ab", gaps, gaps, share, optimize=True)

        def objective(a: Floats) -> tuple[float, Floats]:
            return float(a @ gram @ a), 2 * gram @ a
    else:
        hits = np.stack([p[np.arange(len(codes)), codes] for p in held_out])

        def objective(a: Floats) -> tuple[float, Floats]:
            mixed = np.maximum(a @ hits, np.finfo(np.float64).tiny)
            return float(-share @ np.log(mixed)), -(hits @ (share / mixed))

    found = minimize(
        objective,
        np.full(number, 1 / number),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * number,
        constraints=[{"type": "eq", "fun": lambda a: a.sum() - 1, "jac": np.ones_like}],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    weights = np.where(found.x > 1e-6, found.x, 0.0)
    normalised: Floats = weights / weights.sum()
    return normalised


def _held_out(template: Recalibrator, scores: Scores, codes: Codes, weight: Floats | None, fold: Codes) -> Floats:
    """Probabilities of each row by the map fitted without its fold."""
    if isinstance(template, Identity):
        return scores.probabilities
    p = np.empty((len(scores), scores.classes))
    for number in np.unique(fold):
        here = fold == number
        if here.all():
            return scores.probabilities  # a single row: there is nothing to learn from
        rest = np.flatnonzero(~here)
        inner = fitted(template, scores.take(rest), codes[rest], None if weight is None else weight[rest])
        p[here] = predicted(inner, scores.take(here))
    return p


def _results(templates: list[Recalibrator], losses: Floats, shares: Floats, mass: Floats) -> list[dict[str, Any]]:
    rows = []
    for template, own, share in zip(templates, losses, shares, strict=True):
        loss, loss_se = _mean_and_error(own, mass)
        gain, gain_se = _mean_and_error(losses[0] - own, mass)
        rows.append(
            {
                "name": repr(template),
                "loss": loss,
                "loss_se": loss_se,
                "gain": gain,
                "gain_se": gain_se,
                "weight": float(share),
            }
        )
    return sorted(rows, key=lambda row: float(row["loss"]))


def _mean_and_error(values: Floats, mass: Floats) -> tuple[float, float]:
    """Mean over rows that count `mass` times each, and its standard error."""
    total = float(mass.sum())
    mean = float(values @ mass) / total
    return mean, float(np.sqrt((values - mean) ** 2 @ mass)) / total
