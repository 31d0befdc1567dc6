"""The interval of the mean error over classes by test inversion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.data.predictions import Multiclass
from calibrant.data.validation import fail
from calibrant.inference.multiclass_tests import independent_rows
from calibrant.numerics import inversion as engine
from calibrant.numerics.arrays import Floats, floored_log, softmax
from calibrant.numerics.random_draws import categorical_draws, generator
from calibrant.results.estimate import Interval
from calibrant.results.target import Target

#: Cells that the rows of a class are pooled into, by rank and score.
#: Test: tests/inference/inversion/test_binary_constants.py.
CELLS = 64


@dataclass(frozen=True, eq=False)
class ClassGap:
    """Shares of the cells of one class, and orthonormal bases of the fit, a smoother shape and a straight line."""

    share: Floats
    fit: Floats
    smooth: Floats
    straight: Floats


@dataclass(frozen=True, eq=False)
class ClasswiseFit:
    """All classes of a sample, fitted one by one; `cell` (n, K) is that of each probability, apart for each class."""

    probability: Floats
    labels: NDArray[np.intp]
    cell: NDArray[np.int32]
    classes: list[ClassGap]

    @classmethod
    def of(cls, probability: Floats, labels: NDArray[np.intp]) -> ClasswiseFit:
        """Cells and bases; a class has about 2.5 + 1.1 log(4 sum p(1 - p)) knots."""
        cell = np.empty(probability.shape, np.int32)
        classes = []
        for k, p in enumerate(probability.T):
            place = _place(p)
            number = np.minimum((place * CELLS).astype(np.int32), CELLS - 1)
            cell[:, k] = number + k * CELLS
            count = np.bincount(number, minlength=CELLS)
            middle = np.bincount(number, place, CELLS) / np.maximum(count, 1)
            knots = engine.knots_for(4 * float((p * (1 - p)).sum()))
            bases = [
                engine.orthonormal_hats(middle, count / len(p), engine.whole_knots(some))
                for some in (knots, engine.SHAPE_KNOTS * knots, 2)
            ]
            classes.append(ClassGap(count / len(p), *bases))
        return cls(probability, labels, cell, classes)

    def sums(self, values: Floats) -> Floats:
        """Means over all rows of what lies in each cell, of shape (K, cells)."""
        n, k = values.shape
        return np.bincount(self.cell.ravel(), values.ravel(), k * CELLS).reshape(k, CELLS) / n

    def outcomes(self, labels: NDArray[np.intp]) -> Floats:
        """Shares of the rows that are of the class, in each cell."""
        n, k = self.probability.shape
        return np.bincount(self.cell[np.arange(n), labels], minlength=k * CELLS).reshape(k, CELLS) / n

    def fitted(self, sums: Floats, basis: str) -> Floats:
        """Fitted gap per class and cell from the residuals' sums."""
        bases = (getattr(one, basis) for one in self.classes)
        return np.stack([some @ (some.T @ line) for some, line in zip(bases, sums, strict=True)])

    def coordinates(self, sums: Floats) -> list[Floats]:
        """Coordinates of the fitted gap of each class."""
        return [line @ one.fit for line, one in zip(sums, self.classes, strict=True)]

    def means(self, values: Floats) -> Floats:
        """Means of what lies in each cell, 0 in those without rows."""
        share = np.stack([one.share for one in self.classes])
        return np.divide(self.sums(values), share, out=np.zeros_like(share), where=share > 0)

    def mean_squares(self, gaps: Floats) -> Floats:
        """Mean square over the rows, for each class."""
        return np.stack([one.share @ line**2 for one, line in zip(self.classes, gaps, strict=True)])

    def of_rows(self, gaps: Floats) -> Floats:
        """Gaps per class and cell as gaps of the rows, (n, K)."""
        return gaps.ravel().take(self.cell)

    def noise(self, law: Floats, draws: int, rng: np.random.Generator) -> list[Floats]:
        """Coordinates of probability less outcome in the fit of each class, of samples whose labels follow `law`."""
        n, k = law.shape
        at = categorical_draws(law, draws, rng).T + np.arange(n, dtype=np.int32) * k
        flat = self.cell.ravel()
        events = np.stack([np.bincount(flat.take(line), minlength=k * CELLS) for line in at])
        residual = (self.sums(law) - events.reshape(draws, k, CELLS) / n).transpose(1, 0, 2)
        return [lines @ one.fit for lines, one in zip(residual, self.classes, strict=True)]


def _place(p: Floats) -> Floats:
    """Mean of the rank and of the score, both in [0, 1]; equal scores share their mean rank."""
    _, value, count = np.unique(p, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count + 1) / 2)[value] / max(len(p) - 1, 1)
    width = float(np.ptp(p))
    return np.asarray((rank + (p - p.min()) / width) / 2 if width > 0 else np.full(len(p), 0.5))


#: Share of the risk that the upper end uses; the lower end has that of `Inversion`. More is reserved since gaps between
#: the knots lie beyond the paths. Test: tests/inference/inversion/test_binary_constants.py.
UPPER_SHARE = 0.35

#: Multiples of each kind of gap that are tested. Test: tests/inference/inversion/test_binary_constants.py.
STEPS = 9

#: Classes are taken for wrong, the most conspicuous first, until the others exceed their noise by no more than so many
#: standard deviations. Test: tests/inference/inversion/test_binary_constants.py.
CONSPICUOUS = 2.0

#: Fitted gaps below this part of their noise are replaced by those of a drawn sample.
#: Test: tests/inference/inversion/test_binary_constants.py.
_QUIET = 0.05

Law = Callable[[float], Floats]


@dataclass(frozen=True)
class ClasswiseInversion(validation.Simulated):
    r"""Interval of the mean error over classes, :math:`\frac1K\sum_k (E|p_k - E[Y_k|p_k]|^q)^{1/q}`, by test inversion.

    The gap of each class is fitted by least squares as by `Inversion`, with about 2.5 + 1.1 log(4 Σ p(1 - p)) knots;
    T is the mean over classes of the norms of the fits. Hypothetical joint laws of the labels run along four paths,
    from calibration to well beyond what the data allow:

    - spread: multiples of the fitted gaps of all classes, shrunk by their noise;
    - straight: multiples of straight lines fitted to each class;
    - tempered: the predictions with another temperature;
    - sparse: multiples of the gaps of the conspicuous classes alone. Probability lost by one of these classes goes to
      another of them, not to classes that look calibrated, where it would be hidden: of all laws with the same T this
      one has the least error.

    Labels are drawn *once* for all classes from the law, so that the dependence of the classes is kept, and a mean
    error belongs to the interval if T lies between the quantiles of its draws on some path. The lower end is the least
    of spread, straight and sparse. The upper one is the largest of spread, straight and tempered, enlarged by what 32
    cells per class see beyond the fits. It is at least what it would be if T were the median of a calibrated model, and
    at least what n rows without any surprise cannot exclude. At zero this is the exact test of calibration. The lower
    end spends 0.7 of its risk, as in `Inversion`, and the upper end 0.35; the rest is reserved for approximating the
    shape of the gaps.

    Parameters
    ----------
    draws : int
        Number of simulated samples per hypothesis.
    seed : int

    Notes
    -----
    Measured coverage is in reproduce/results/multiclass.md. A gap that oscillates faster than the knots is not seen.

    Examples
    --------
    >>> from functools import partial
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 1000)
    >>> y = (rng.random((1000, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    >>> data = cal.Multiclass(y, p**2 / (p**2).sum(axis=1, keepdims=True))
    >>> found = cal.interval(partial(cal.classwise, cal.ece), data)
    >>> str(found.target), bool(found.interval.low < 0.095 < found.interval.high)  # the true one is 0.095
    ('classwise mean (L1)', True)
    """

    serves: ClassVar[str] = "classes"
    quantity: ClassVar[str] = "classwise mean"
    least_draws = 2

    draws: int = 399
    seed: int = 0

    def interval(self, data: Multiclass, *, norm: float = 1, level: float = 0.95) -> Interval:
        """The interval of the mean error in this norm, a number from 1 to 2."""
        norm = float(norm)
        if not 1 <= norm <= 2:
            fail(f"ClasswiseInversion is for norms from 1 to 2, got {norm:g}.", ValueError)
        rng = generator(self.seed, "classwise inversion")
        rows = independent_rows(data, needed_by="ClasswiseInversion", named=False)
        trial = _Trial.of(ClasswiseFit.of(*_in_own_order(*rows)), self.draws, rng)
        upper_risk = UPPER_SHARE * (1 - level) / 2
        unseen = -2 * np.log(upper_risk) / data.y_prob.size  # n rows without a surprise do not exclude so many misses
        paths = {
            name: trial.path(law, norm, (upper_risk, engine.tail_risk(level))) for name, law in trial.laws().items()
        }
        observed = trial.observed(norm)
        high = max(path.upper_end(observed) for name, path in paths.items() if name != "sparse")
        largest = (2 / data.y_prob.shape[1]) ** (1 / norm)  # since the gaps of a row sum to at most 2
        return Interval(
            min(largest, *(path.lower_end(observed) for name, path in paths.items() if name != "tempered")),
            min(largest, max(unseen, float(np.hypot(high, trial.unresolved(norm))))),
            level=level,
            method=repr(self),
            assumption="independent rows; gaps that are smooth in the probability of their class; approximate",
            target=Target("classwise mean", norm),
        )


def _in_own_order(probability: Floats, labels: NDArray[np.intp]) -> tuple[Floats, NDArray[np.intp]]:
    """Classes by their mean probability and rows by the sum of their squares: names and order of rows do not matter."""
    count = np.bincount(labels, minlength=probability.shape[1])
    squares, means = (probability**2).mean(axis=0).round(12), probability.mean(axis=0).round(12)
    classes = np.lexsort((count, squares, means))
    p, y = probability[:, classes], np.argsort(classes)[labels]
    rows = np.lexsort((y, p @ np.sqrt(np.arange(2, p.shape[1] + 2)), np.einsum("nk,nk->n", p, p)))
    return p[rows], y[rows]


@dataclass(frozen=True, eq=False)
class _Trial:
    """The fitted sample with its noise, under calibration and near the fit, and what is to be tried."""

    fit: ClasswiseFit
    residual: Floats
    noise_at_zero: list[Floats]
    noise_at_fit: list[Floats]
    spread: Floats

    @classmethod
    def of(cls, fit: ClasswiseFit, draws: int, rng: np.random.Generator) -> _Trial:
        residual = fit.sums(fit.probability) - fit.outcomes(fit.labels)
        at_zero = fit.noise(fit.probability, draws, rng)
        spread = _shrunken(fit, residual, at_zero)
        near = _normalised(fit.probability - fit.of_rows(spread))
        return cls(fit, residual, at_zero, fit.noise(near, draws, rng), spread)

    @cached_property
    def power(self) -> Floats:
        """Mean square of the fitted gap of each class."""
        return self.fit.mean_squares(self.fit.fitted(self.residual, "fit"))

    @cached_property
    def null_power(self) -> Floats:
        """The same of calibrated samples, one line per class."""
        return np.stack([(one**2).sum(axis=1) for one in self.noise_at_zero])

    def laws(self) -> dict[str, Law]:
        """Joint laws of the labels along each path; 1 is about as far from calibration as the fit."""
        p, size = self.fit.probability, self.size
        straight = self.fit.fitted(self.residual, "straight")
        wrong = self.conspicuous()
        sparse = np.where(wrong[:, None], self.fit.fitted(self.residual, "smooth"), 0.0)
        rows = [
            self.fit.of_rows(gap * np.sqrt(size / max(float(self.fit.mean_squares(gap).sum()), 1e-300)))
            for gap in (self.spread, straight, sparse)
        ]
        return {
            "spread": lambda t: _normalised(p - t * rows[0]),
            "straight": lambda t: _normalised(p - t * rows[1]),
            "sparse": lambda t: _moved_within(p, t * rows[2], wrong),
            "tempered": self.tempered(),
        }

    @cached_property
    def size(self) -> float:
        """Mean squares of the spread gaps, summed over classes."""
        return float(self.fit.mean_squares(self.spread).sum())

    def conspicuous(self) -> NDArray[np.bool_]:
        """The classes that stand out, at least two of them: the gaps of the others together may be noise."""
        noise = self.null_power.mean(axis=1)
        order = np.argsort(-(self.power - noise) / np.maximum(self.null_power.std(axis=1), 1e-300))
        excess = np.cumsum((self.power - noise)[order][::-1])[::-1]
        spread = np.cumsum(self.null_power[order][::-1], axis=0)[::-1].std(axis=1)
        settled = np.append(excess[1:] <= CONSPICUOUS * spread[1:], True)
        chosen = np.zeros(len(order), np.bool_)
        chosen[order[: max(2, int(np.argmax(settled)) + 1)]] = True
        return chosen

    def tempered(self) -> Law:
        """Another temperature, in the direction in which the labels lie."""
        p = self.fit.probability
        z = floored_log(p)
        centred = z - np.einsum("nk,nk->n", p, z)[:, None]
        extreme = float(centred[np.arange(len(p)), self.fit.labels].sum()) < 0
        slope = float(self.fit.mean_squares(self.fit.means(p * centred)).sum())
        unit = np.sqrt(self.size / max(slope, 1e-300))
        return lambda t: softmax(z / (1 + t * unit) if extreme else z * (1 + t * unit))

    def unresolved(self, norm: float) -> float:
        """What cells see beyond the fits, less its noise: the root mean square over classes, as a part of the norm."""
        p, n = self.fit.probability, len(self.fit.probability)
        residual, variance, share = (
            values.reshape(len(values), -1, 2).sum(axis=2)
            for values in (self.residual, self.fit.sums(p * (1 - p)), np.stack([one.share for one in self.fit.classes]))
        )
        part = np.divide(1.0, share, out=np.zeros_like(share), where=share > 0)
        in_cells = ((residual**2 - variance / n) * part).sum(axis=1)
        fitted = self.power - self.null_power.mean(axis=1)
        own, square = (self.observed(q) for q in (norm, 2.0))
        return float(np.sqrt(max(0.0, float((in_cells - fitted).mean()))) * own / max(square, 1e-300))

    def observed(self, norm: float) -> float:
        """The mean norm of the fitted gaps."""
        return float(self._mean_norm(self.fit.coordinates(self.residual), norm)[0])

    def path(self, law: Law, norm: float, risk: tuple[float, float]) -> engine.Path:
        """The distribution of the mean norm along a path of joint laws."""

        def simulate(t: float) -> tuple[float, Floats]:
            gap = self.fit.coordinates(self.fit.sums(self.fit.probability - law(t)))
            noises = self.noise_at_zero if t == 0 else self.noise_at_fit
            drawn = self._mean_norm([mean + some for mean, some in zip(gap, noises, strict=True)], norm)
            return float(self._mean_norm(gap, norm)[0]) if t > 0 else 0.0, drawn

        size = np.sqrt(max(self.size, 1e-300))
        noise = np.sqrt(self.null_power.mean(axis=1).sum())
        reach = np.sqrt(self.power.sum()) + 3 * noise / max(len(self.power) / 4, 1.0) ** 0.25  # many classes vary less
        return engine.Path.along(engine.multiples_to(float(reach), float(size), STEPS), simulate, risk)

    def _mean_norm(self, coordinates: list[Floats], norm: float) -> Floats:
        """Mean over classes of the norms of gaps, one per line of coordinates."""
        norms = [
            (np.abs(np.atleast_2d(lines) @ one.fit.T) ** norm @ one.share) ** (1 / norm)
            for one, lines in zip(self.fit.classes, coordinates, strict=True)
        ]
        return np.asarray(np.mean(norms, axis=0))


def _shrunken(fit: ClasswiseFit, residual: Floats, noise: list[Floats]) -> Floats:
    """Smooth gaps of all classes, each shrunk by its noise, and by no more than half of what all together are."""
    power = fit.mean_squares(fit.fitted(residual, "fit"))
    expected = np.array([(one**2).sum(axis=1).mean() for one in noise])
    own = np.sqrt(np.maximum(0.0, 1 - expected / np.maximum(power, 1e-300)))
    common = np.sqrt(max(0.0, 1 - float(expected.sum()) / max(float(power.sum()), 1e-300)))
    if power.sum() < _QUIET * expected.sum():  # labels that agree better than by chance have no shape to multiply
        return np.stack([one.fit @ lines[0] for one, lines in zip(fit.classes, noise, strict=True)])
    kept = np.maximum(own, common / 2)
    return fit.fitted(residual, "smooth") * (kept if kept.any() else np.full(len(kept), 0.5))[:, None]


def _normalised(values: Floats) -> Floats:
    """Probabilities: no entry below 0, rows that sum to 1."""
    law = np.maximum(values, 0.0)
    total = law.sum(axis=1, keepdims=True)
    law[total[:, 0] <= 0] = 1.0  # gaps larger than every probability of the row say nothing of its classes
    law /= law.sum(axis=1, keepdims=True)
    return law


def _moved_within(probability: Floats, gap: Floats, wrong: NDArray[np.bool_]) -> Floats:
    """Some classes corrected by their gaps, with the total of these classes as before and the others untouched."""
    law = probability.copy()
    some = np.maximum(probability[:, wrong] - gap[:, wrong], 0.0)
    total = np.maximum(some.sum(axis=1, keepdims=True), 1e-300)
    law[:, wrong] = some * (probability[:, wrong].sum(axis=1, keepdims=True) / total)
    return law
