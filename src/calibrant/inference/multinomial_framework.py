"""Calibration intercepts and slopes of several classes: the multinomial logistic recalibration framework."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calibrant.data import validation
from calibrant.data.predictions import Multiclass
from calibrant.data.validation import InvalidPredictions
from calibrant.inference.binary_bounds.residual_noise import require_clusters
from calibrant.inference.score_covariance import ScoreCovariance
from calibrant.numerics.arrays import Floats
from calibrant.numerics.multinomial_lines import MultinomialLines
from calibrant.results.estimate import Estimate, Interval
from calibrant.results.printable import printable
from calibrant.results.target import Target

Kind = Literal["calibration intercept", "calibration slope"]

#: Of more rows, intervals are those of the normal approximation, which by then are the same.
_PROFILED_ROWS = 20_000

_WORDS = "independent rows (or clusters)"


@dataclass(frozen=True, eq=False)
class MultinomialRecalibration:
    """Intercept and slope of each class but the reference; made by `multinomial_recalibration`.

    Attributes
    ----------
    classes : tuple
        The other classes, in their order.
    reference : hashable
        The class with which each is compared.
    intercepts, slopes : tuple of Estimate
        One per class, with intervals: 0 and 1 if calibrated.
    joint_intercepts : array
        Those of the fit in which the slopes are free.
    note : str
        What the data do not determine, and why; empty if nothing.
    n, left_out : int
        Rows, and those of them left out because some class was predicted to have probability 0.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([2, 2, 2], 600)
    >>> y = (rng.random((600, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    >>> print(multinomial_recalibration(y, p))
    class  intercept     95% interval  slope    95% interval
    0         -0.044  -0.256 to 0.167  0.875  0.684 to 1.075
    2         -0.063  -0.278 to 0.150  0.922  0.725 to 1.128
    <BLANKLINE>
    600 rows; each class is compared with 1.
    """

    classes: tuple[Hashable, ...]
    reference: Hashable
    intercepts: tuple[Estimate, ...]
    slopes: tuple[Estimate, ...]
    joint_intercepts: Floats
    note: str
    n: int
    left_out: int

    def __repr__(self) -> str:
        return f"<MultinomialRecalibration of {len(self.classes) + 1} classes, n={self.n:_}>"

    def __str__(self) -> str:
        lines = [["class", *("intercept", "", "slope", "")]]
        for label, *estimates in zip(self.classes, self.intercepts, self.slopes, strict=True):
            cells = [printable(str(label))]
            for e in estimates:
                between = e.interval
                cells += [f"{e.value:.3f}", "" if between is None else f"{between.low:.3f} to {between.high:.3f}"]
                lines[0][len(cells) - 1] = "" if between is None else f"{between.level:.0%} interval"
            lines.append(cells)
        wide = [max(len(line[k]) for line in lines) for k in range(5)]
        table = ["  ".join([line[0].ljust(wide[0]), *map(str.rjust, line[1:], wide[1:])]) for line in lines]
        note = f" {self.note[:1].upper()}{self.note[1:]}." if self.note else ""
        left = f" ({self.left_out} left out: a class was predicted to have probability 0)" if self.left_out else ""
        end = f"{self.n:,} rows{left}; each class is compared with {printable(str(self.reference))}.{note}"
        return "\n".join([*(line.rstrip() for line in table), "", end])

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON; numbers that are not finite are None, and `note` says why."""
        return {
            "reference": str(self.reference),
            "classes": [
                {"class": str(label), "intercept": a.to_dict(), "slope": b.to_dict()}
                for label, a, b in zip(self.classes, self.intercepts, self.slopes, strict=True)
            ],
            "joint_intercepts": [x if np.isfinite(x) else None for x in self.joint_intercepts.tolist()],
            **{name: getattr(self, name) for name in ("note", "n", "left_out")},
        }


def multinomial_recalibration(
    data: Multiclass | ArrayLike,
    y_prob: ArrayLike | None = None,
    /,
    *,
    reference: Hashable | None = None,
    level: float = 0.95,
) -> MultinomialRecalibration:
    r"""Calibration intercepts and slopes of several classes, each class compared with a reference class r.

    .. math:: \log\frac{P(Y = k)}{P(Y = r)} = a_k + b_k \log\frac{p_k}{p_r}, \qquad k \ne r

    fitted by maximum likelihood to all classes at once: the *intercepts* with all slopes fixed at 1 ("calibration in
    the large": 0 if calibrated, positive where class k is predicted too rarely), and the *slopes* with free intercepts
    (1 if calibrated, below 1 where predictions are too extreme). For two classes they are `calibration_intercept` and
    `calibration_slope`. Both depend on the reference.

    Intervals are profile-likelihood intervals, adjusted for clusters, weights and other curves as those of
    `calibrant.inference.ProfileLikelihood`; beyond 20,000 rows their normal approximation. A class that never occurred
    has an intercept of minus infinity and no slope. Where outcomes are separated, or scores do not vary, slopes are
    NaN; `note` says so.

    Parameters
    ----------
    data : Multiclass, or y_true with the matrix `y_prob` next
    reference : class label, optional
        By default the most frequent class.
    level : float in (0, 1)

    References
    ----------
    Van Hoorde, Vergouwe, Timmerman, Van Huffel, Steyerberg, Van Calster (2014), Assessing calibration of multinomial
    risk prediction models; Van Calster et al. (2016), A calibration hierarchy for risk models was defined.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([2, 2, 2], 4000)
    >>> sharp = p**2 / (p**2).sum(axis=1, keepdims=True)  # too extreme: the slope is 1/2
    >>> y = (rng.random((4000, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    >>> found = multinomial_recalibration(y, sharp, reference=0)
    >>> [bool(0.5 in slope.interval) for slope in found.slopes], found.slopes[0].interval.high < 0.6
    ([True, True], True)
    """
    level = validation.fraction("level", level)
    task = data if isinstance(data, Multiclass) else Multiclass(data, y_prob)
    fit = _Framework.of(task, reference)
    large, note_large = fit.in_the_large(level)
    slopes, joint, note_slopes = fit.slopes(level)
    return MultinomialRecalibration(
        classes=tuple(fit.classes),
        reference=fit.reference,
        intercepts=tuple(large),
        slopes=tuple(slopes),
        joint_intercepts=joint,
        note="; ".join(dict.fromkeys(filter(None, (note_large, note_slopes)))),
        n=len(task),
        left_out=fit.left_out,
    )


@dataclass(frozen=True, eq=False)
class _Framework:
    """The regression on log ratios to the reference class; classes that never occurred are left out of it."""

    classes: Sequence[Hashable]
    reference: Hashable
    present: Floats
    lines: MultinomialLines
    cluster: Any
    left_out: int
    n: int

    @classmethod
    def of(cls, task: Multiclass, reference: Hashable | None) -> _Framework:
        labels = list(task.classes)
        weight = np.ones(len(task)) if task.weight is None else task.weight
        seen = np.bincount(task.y_true, weight, len(labels))
        if reference is not None and reference not in labels:
            message = f"reference={reference!r} is not one of the classes {labels!r}."
            raise InvalidPredictions(message)
        first = int(seen.argmax()) if reference is None else labels.index(reference)
        if not seen[first] > 0:
            message = f"The reference class {labels[first]!r} was never observed; choose another one."
            raise InvalidPredictions(message)
        others = [k for k in range(len(labels)) if k != first]
        p = task.y_prob.astype(np.float64)
        usable = (p > 0).all(axis=1) & (weight > 0)
        if not usable.any():
            message = "y_prob must be positive for all classes in some rows to fit intercepts and slopes; it never is."
            raise InvalidPredictions(message)
        seen = np.bincount(task.y_true[usable], weight[usable], len(labels))
        if not seen[first] > 0:
            message = f"The reference class {labels[first]!r} was observed only where some class has probability 0."
            raise InvalidPredictions(message)
        present = np.array([seen[k] > 0 for k in others])
        kept = [k for k in others if seen[k] > 0]
        x = np.log(p[usable][:, kept]) - np.log(p[usable, first])[:, None]
        number = np.zeros(len(labels), dtype=np.intp)
        number[kept] = np.arange(1, len(kept) + 1)
        w = weight[usable]
        lines = MultinomialLines(x, number[task.y_true[usable]], w * (w.sum() / (w @ w)))
        cluster = None
        if task.group is not None:
            cluster = np.unique(task.group[usable], return_inverse=True)[1].reshape(-1)
            require_clusters(int(cluster.max()) + 1, needed_by="multinomial_recalibration")
        left_out = int((weight > 0).sum() - usable.sum())
        return cls([labels[k] for k in others], labels[first], present, lines, cluster, left_out, len(task))

    def in_the_large(self, level: float) -> tuple[list[Estimate], str]:
        """Intercepts with slopes of 1."""
        k = self.lines.lines
        start, free = np.concatenate([np.zeros(k), np.ones(k)]), np.arange(2 * k) < k
        found = iter(self._limits(self.lines.fit(start, free)[0], free, np.arange(k), level) if k else [])
        made = []
        for seen in self.present:
            value, low, high = next(found) if seen else (-np.inf, -np.inf, np.inf)
            made.append(self._estimate("calibration intercept", value, low, high, level))
        missing = [str(label) for label, seen in zip(self.classes, self.present, strict=True) if not seen]
        return made, f"never observed: {', '.join(map(printable, missing))}" if missing else ""

    def slopes(self, level: float) -> tuple[list[Estimate], Floats, str]:
        """Slopes with free intercepts, and these."""
        k = self.lines.lines
        joint = np.full(len(self.present), np.nan)
        spread = self.lines.x.std(axis=0) if k else np.zeros(0)
        rows = [(np.nan, -np.inf, np.inf)] * k
        note = ""
        if np.any(spread <= 1e-12):
            note = "all scores of a class are the same, so that slopes are undetermined"
        elif k:
            best, _, converged = self.lines.fit(np.concatenate([np.zeros(k), np.ones(k)]), np.ones(2 * k, dtype=bool))
            if converged:
                joint[self.present] = best[:k]
                rows = self._limits(best, np.ones(2 * k, dtype=bool), np.arange(k, 2 * k), level)
            else:
                note = "separated outcomes, so that slopes are undetermined"
        found = iter(rows)
        each = [next(found) if seen else (np.nan, -np.inf, np.inf) for seen in self.present]
        return [self._estimate("calibration slope", *one, level) for one in each], joint, note

    def _limits(self, best: Floats, free: Any, which: Any, level: float) -> list[tuple[float, float, float]]:
        """Each parameter with both ends of its interval."""
        from scipy.special import ndtri

        z = float(ndtri((1 + level) / 2))
        rows = self.lines.residuals(best)[:, free] * self.lines.weight[:, None]
        sums = rows
        if self.cluster is not None:
            sums = np.stack([np.bincount(self.cluster, column) for column in rows.T], axis=1).astype(np.float64)
        number = len(sums)
        spread = ScoreCovariance(sums.T @ sums * (number / max(number - 1, 1)), None if self.cluster is None else sums)
        inverse = np.linalg.pinv(self.lines.information(best)[np.ix_(free, free)])
        sandwich = inverse @ spread.matrix @ inverse
        place, found = np.cumsum(free) - 1, []
        for k in which:
            j = int(place[k])
            ratio = max(1.0, float(sandwich[j, j] / inverse[j, j])) * spread.inflation(level, inverse[j])
            error = float(np.sqrt(inverse[j, j]))
            if len(rows) > _PROFILED_ROWS:
                reach = z * error * np.sqrt(ratio)
                low, high = best[k] - reach, best[k] + reach
            else:
                low, high = self.lines.limits(best, free, int(k), z**2 / 2 * ratio, error * np.sqrt(ratio))
            found.append((float(best[k]), float(low), float(high)))
        return found

    def _estimate(self, kind: Kind, value: float, low: float, high: float, level: float) -> Estimate:
        target = Target(kind)
        method = "profile likelihood" if len(self.lines.x) <= _PROFILED_ROWS else "normal approximation"
        interval = Interval(low, high, level=level, method=method, assumption=_WORDS, target=target)
        name = kind.capitalize()
        return Estimate(value, name=name, method="maximum likelihood", n=self.n, target=target, interval=interval)
