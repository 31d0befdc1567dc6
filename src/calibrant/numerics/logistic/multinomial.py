r"""Multinomial logistic regression on log probabilities: affine maps, a line per class, and the best temperature.

With the log probabilities z of a row of outcome c and weight w, an affine map is softmax(z + A z + b), where A is a
matrix or a diagonal. `AffineLogLoss` is its objective with derivatives,

.. math:: \frac{1}{W}\sum_i w_i\,\bigl[-\log \mathrm{softmax}(z_i + A z_i + b)_{c_i}\bigr]
          + \lambda_b \|b\|^2 + \lambda_d \sum_k A_{kk}^2 + \lambda_o \sum_{k \ne j} A_{kj}^2,
          \qquad W = \sum_i w_i.

Its arrays are held class by row, (K, n): sums over classes then run along long rows, twice as fast as across short
ones. `MultinomialLines` profiles the likelihood along one intercept or slope per class.

`inverse_temperature` finds b = 1 / T for the logits L. The total log loss f is convex in b, and its derivatives are
sums of the cumulants of L under softmax(b L):

.. math:: f'(b) = \sum_i w_i (\kappa_1 - L_{ic}), \quad f''(b) = \sum_i w_i \kappa_2,\ f'''(b) = \sum_i w_i \kappa_3

Halley's method on log b triples the number of correct digits per pass. A first guess from a few thousand rows leaves
two passes over all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.acceleration import compiled
from calibrant.numerics.arrays import CHUNK, Codes, Floats, expit
from calibrant.numerics.logistic.stacked import crossing, minimum

#: Numbers worked on at once. Speed: a pass over them stays in the second-level cache; no result depends on it.
_BLOCK = 1 << 16

#: The most parameters whose whole curvature is factorised, and the most classes whose own blocks of it are; beyond,
#: only its diagonal is used. Speed: benchmarks/matrix_scaling.py; no result depends on it.
_DENSE, _BLOCKS = 700, 200

#: Rows from which the curvature is estimated: at first (all of it, or blocks), and later. Speed:
#: benchmarks/matrix_scaling.py; no result depends on it.
_DENSE_ROWS, _BLOCK_ROWS, _LATER_ROWS = 2500, 800, 20_000

#: Steps of L-BFGS in units of one curvature, and how often these units are renewed. Speed:
#: benchmarks/matrix_scaling.py; no result of a fit that converges depends on it.
_STEPS, _ROUNDS = 25, 16


#: Exponentials of logits of less than this size neither overflow nor vanish. Derived: those of sizes above 700 do.
_SAFE = 300


@dataclass(frozen=True)
class Penalty:
    """What the squares of the parameters cost: no factor 1/2."""

    intercept: float
    diagonal: float
    off_diagonal: float


class AffineLogLoss(ABC):
    """Penalised log loss of an affine map of log probabilities z, (K, n); its shape is left to subclasses."""

    #: From which parameter of a class on one number may be added to that of all classes.
    _free: ClassVar[int]

    def __init__(self, z: Floats, codes: Codes, weight: Floats | None, penalty: Penalty) -> None:
        self.z = z
        self.classes, n = z.shape
        self.share = np.full(n, 1 / n) if weight is None else weight / weight.sum()
        self.cost = self._costs(penalty)
        size = max(_BLOCK // self.classes, 64)
        self._blocks = [slice(start, min(start + size, n)) for start in range(0, n, size)]
        self._p = np.empty_like(z)  # probabilities times the share of the row, at the last evaluated point
        observed = np.zeros_like(z)
        observed[codes, np.arange(n)] = self.share
        self._chosen = float(np.einsum("kn,kn->", observed, z))
        self._observed = self._pull(observed, slice(None))

    def centred(self, theta: Floats) -> Floats:
        """The parameters of the same map that cost least: what all classes share changes no probability."""
        theta = theta.reshape(self.cost.shape).copy()
        part, cost = theta[:, self._free :], self.cost[:, self._free :]
        part -= (cost * part).sum(axis=0) / cost.sum(axis=0)
        return theta

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """Value and gradient at `theta`, which is centred."""
        total, pulled = self._normaliser(theta)
        gradient = 2 * self.cost * theta - self._observed + pulled
        value = total - self._chosen - float(np.vdot(theta, self._observed)) + float(np.vdot(self.cost, theta**2))
        return value, gradient

    def root(self, *, later: bool) -> Floats:
        """Blocks (b, m, m) of a root R of the inverse curvature at the last evaluated point, R' R = 1 / curvature.

        Blocks are of all parameters, of those of each class, or of each.
        """
        dense = self.cost.size <= _DENSE
        sample = _LATER_ROWS if later else _DENSE_ROWS if dense else _BLOCK_ROWS
        rows = slice(None, None, max(self.z.shape[1] // sample, 1))
        scale = 1 / self.share[rows].sum()
        found = (self._dense if dense else self._by_class)(self._p[:, rows] * scale, self.share[rows] * scale, rows)
        size, cost = found.shape[1], 2 * self.cost.reshape(len(found), -1)
        if size == 1:
            return np.asarray(1 / np.sqrt(found + cost[:, None]))
        found[:, np.arange(size), np.arange(size)] += cost
        return np.stack([_inverse_factor(block) for block in found])

    def _normaliser(self, theta: Floats) -> tuple[float, Floats]:
        """The logs of the normalising sums of all rows, by their share, and its gradient; keeps the probabilities."""
        total, gradient, safe = 0.0, np.zeros(self.cost.shape), self._largest_logit(theta) < _SAFE
        for rows in self._blocks:
            share, p = self.share[rows], self._p[:, rows]
            self._push(theta, rows, p)
            if not safe:
                top = p.max(axis=0)
                p -= top
                total += float(share @ top)
            np.exp(p, out=p)
            sums = p.sum(axis=0)
            p *= share / sums
            total += float(share @ np.log(sums))
            gradient += self._pull(p, rows)
        return total, gradient

    @abstractmethod
    def _costs(self, penalty: Penalty) -> Floats:
        """Cost of each parameter, in the shape of the parameters, (K, parameters of a class)."""

    @abstractmethod
    def _largest_logit(self, theta: Floats) -> float:
        """No logit is larger than this."""

    @abstractmethod
    def _push(self, theta: Floats, rows: slice, out: Floats) -> None:
        """The logits z + A z + b of some rows, (K, m)."""

    @abstractmethod
    def _pull(self, weights: Floats, rows: slice) -> Floats:
        """The sums over rows by which parameters change logits of these weights, (K, m)."""

    @abstractmethod
    def _dense(self, p: Floats, share: Floats, rows: slice) -> Floats:
        """Curvature of the log loss from some rows, as one block; `p` holds their probabilities times their share."""

    @abstractmethod
    def _by_class(self, p: Floats, share: Floats, rows: slice) -> Floats:
        """The blocks of each class of it; of very many classes, the diagonal as blocks of one."""


class MatrixLogLoss(AffineLogLoss):
    """A is any matrix; the parameters are [A, b], of shape (K, K + 1)."""

    _free = 0

    def __init__(self, z: Floats, codes: Codes, weight: Floats | None, penalty: Penalty) -> None:
        self._x = np.concatenate([z, np.ones((1, z.shape[1]))])
        super().__init__(z, codes, weight, penalty)

    def _costs(self, penalty: Penalty) -> Floats:
        cost = np.full((self.classes, self.classes + 1), penalty.off_diagonal)
        np.fill_diagonal(cost, penalty.diagonal)
        cost[:, -1] = penalty.intercept
        return cost

    def _largest_logit(self, theta: Floats) -> float:
        return float((np.abs(theta + np.eye(*theta.shape)) @ self._largest).max())

    @cached_property
    def _largest(self) -> Floats:
        """The largest size of each variable."""
        return np.maximum(self._x.max(axis=1), -self._x.min(axis=1))

    def _push(self, theta: Floats, rows: slice, out: Floats) -> None:
        np.matmul(theta + np.eye(*theta.shape), self._x[:, rows], out=out)

    def _pull(self, weights: Floats, rows: slice) -> Floats:
        return weights @ self._x[:, rows].T

    def _dense(self, p: Floats, share: Floats, rows: slice) -> Floats:
        x, width = np.ascontiguousarray(self._x[:, rows]), self.classes + 1
        spread = p[:, None, :] * x[None]
        flat = (spread / np.sqrt(share)).reshape(-1, x.shape[1])
        hessian = -(flat @ flat.T)
        for k in range(self.classes):
            block = slice(k * width, (k + 1) * width)
            hessian[block, block] += spread[k] @ x.T
        return hessian[None]

    def _by_class(self, p: Floats, share: Floats, rows: slice) -> Floats:
        x, curvature = np.ascontiguousarray(self._x[:, rows]), np.maximum(p * (1 - p / share), 0.0)
        if self.classes > _BLOCKS:
            return np.asarray((curvature @ (x**2).T).reshape(-1, 1, 1))
        halves = (x * half for half in np.sqrt(curvature))
        return np.stack([half @ half.T for half in halves])  # a matrix and its transpose: half the work


class VectorLogLoss(AffineLogLoss):
    """A is a diagonal; the parameters are [diagonal, b], of shape (K, 2)."""

    _free = 1

    def _costs(self, penalty: Penalty) -> Floats:
        return np.tile([penalty.diagonal, penalty.intercept], (self.classes, 1))

    def _normaliser(self, theta: Floats) -> tuple[float, Floats]:
        plain = self.z.flags.c_contiguous and self.z.dtype == np.float64
        fast = compiled(self.z.size, saves=40.0) if plain else None
        if fast is None:
            return super()._normaliser(theta)
        slope, intercept, pulled = 1 + theta[:, 0], theta[:, 1].copy(), np.zeros((2, self.classes))
        safe = self._largest_logit(theta) < _SAFE
        return float(fast.vector_scaling(self.z, slope, intercept, self.share, safe, self._p, pulled)), pulled.T

    def _largest_logit(self, theta: Floats) -> float:
        return float(np.max(np.abs(1 + theta[:, 0]) * self._largest + np.abs(theta[:, 1])))

    @cached_property
    def _largest(self) -> float:
        """The largest size of a log probability."""
        return max(float(self.z.max()), -float(self.z.min()))

    def _push(self, theta: Floats, rows: slice, out: Floats) -> None:
        np.multiply(self.z[:, rows], 1 + theta[:, :1], out=out)
        out += theta[:, 1:]

    def _pull(self, weights: Floats, rows: slice) -> Floats:
        return np.stack([np.vecdot(weights, self.z[:, rows]), weights.sum(axis=1)], axis=1)

    def _dense(self, p: Floats, share: Floats, rows: slice) -> Floats:
        spread = np.stack([p * self.z[:, rows], p], axis=1)
        flat = (spread / np.sqrt(share)).reshape(2 * self.classes, -1)
        hessian = -(flat @ flat.T).reshape(self.classes, 2, self.classes, 2)
        k = np.arange(self.classes)
        hessian[k, :, k] += self._moments(p, rows)
        return hessian.reshape(1, 2 * self.classes, -1)

    def _by_class(self, p: Floats, share: Floats, rows: slice) -> Floats:
        return self._moments(p * (1 - p / share), rows)

    def _moments(self, weight: Floats, rows: slice) -> Floats:
        """Weighted sums over rows of the products of (z, 1) and (z, 1) of each class, (K, 2, 2)."""
        z = self.z[:, rows]
        square, cross = (np.vecdot(weight, power) for power in (z**2, z))
        return np.moveaxis(np.array([[square, cross], [cross, weight.sum(axis=1)]]), -1, 0)


def _inverse_factor(matrix: Floats) -> Floats:
    """The inverse of the Cholesky factor of a positive definite matrix, lifted where rounding has made it less."""
    from scipy.linalg.lapack import dtrtri

    lift = np.finfo(np.float64).eps * float(np.trace(matrix)) + np.finfo(np.float64).tiny
    while True:
        try:
            return np.asarray(dtrtri(np.linalg.cholesky(matrix + lift * np.eye(len(matrix))), lower=1)[0])
        except np.linalg.LinAlgError:
            lift *= 10


@dataclass(frozen=True)
class Minimum:
    """Where a search ended: parameters, value, largest component of the gradient, evaluations, what is left to gain."""

    theta: Floats
    value: float
    gradient: float
    evaluations: int
    left: float


def minimise(problem: AffineLogLoss, *, tolerance: float) -> Minimum:
    r"""Minimum of a penalised log loss from no change on, to within about `tolerance`, by L-BFGS.

    The parameters are measured in units of an estimate of the curvature; half the squared gradient is then what is left
    to gain. Where a few steps do not suffice, the units are renewed where the search has arrived.
    """
    from scipy.optimize import minimize

    theta, evaluations = np.zeros(problem.cost.shape), 1
    value, gradient = problem.evaluate(theta)
    scaled, known = gradient, True  # whether value and gradient belong to theta

    def at(u: Floats) -> Floats:
        return problem.centred(theta + _times(root.swapaxes(1, 2), u.reshape(theta.shape)))

    def objective(u: Floats) -> tuple[float, Floats]:
        nonlocal evaluations, value, gradient, scaled, known
        if not known:
            value, gradient = problem.evaluate(at(u))
            evaluations += 1
        known, scaled = False, _times(root, gradient).ravel()
        return value, scaled

    def stop(intermediate_result: Any) -> None:
        if float(scaled @ scaled) <= 2 * tolerance:
            raise StopIteration

    options = {"maxiter": _STEPS, "maxcor": _STEPS, "ftol": 0.0, "gtol": 0.0}
    for number in range(_ROUNDS):
        root = problem.root(later=number > 0)
        found = minimize(objective, np.zeros(theta.size), jac=True, method="L-BFGS-B", callback=stop, options=options)
        theta = at(found.x)
        left = float(found.jac @ found.jac) / 2
        if left <= tolerance or found.nit == 0:  # no step shows a gain
            break
    return Minimum(theta, float(found.fun), float(np.abs(gradient).max()), evaluations, left if found.nit else 0.0)


def _times(blocks: Floats, vector: Floats) -> Floats:
    """The product of a matrix of diagonal blocks (b, m, m) and a vector."""
    return np.asarray((blocks @ vector.reshape(*blocks.shape[:2], 1)).reshape(vector.shape))


#: Curvatures per unit of weight below this are none: a class of one row in a million has more, and separated outcomes
#: have less. Test: tests/numerics/logistic/test_multinomial.py::test_rare_classes_are_no_separation.
FLAT = 3e-8


@dataclass(frozen=True, eq=False)
class MultinomialLines:
    r"""Rows with K - 1 variables x and an outcome 0 .. K - 1, under

    .. math:: \log \frac{P(Y = k)}{P(Y = 0)} = a_k + b_k x_k, \qquad k = 1, \dots, K - 1.

    Parameters are the intercepts and then the slopes, 2 (K - 1) of them.
    """

    x: Floats
    codes: Codes
    weight: Floats

    @property
    def lines(self) -> int:
        """K - 1."""
        return self.x.shape[1]

    def chances(self, parameters: Floats) -> tuple[Floats, Floats]:
        """Fitted probabilities of the classes 1 .. K - 1, and the loss of all rows."""
        eta = parameters[: self.lines] + parameters[self.lines :] * self.x
        top = np.maximum(eta.max(axis=1), 0.0)
        powers = np.exp(eta - top[:, None])
        total = powers.sum(axis=1) + np.exp(-top)
        own = np.where(self.codes > 0, eta[np.arange(len(eta)), np.maximum(self.codes, 1) - 1], 0.0)
        return powers / total[:, None], self.weight @ (np.log(total) + top - own)

    def residuals(self, parameters: Floats) -> Floats:
        """The gradient of each row's log likelihood, (n, 2 (K - 1)), without its weight."""
        chance, _ = self.chances(parameters)
        gap = (self.codes[:, None] == np.arange(1, self.lines + 1)) - chance
        return np.concatenate([gap, gap * self.x], axis=1)

    def information(self, parameters: Floats) -> Floats:
        """The Hessian of the loss."""
        return self._derivatives(parameters)[2]

    def _derivatives(self, parameters: Floats) -> tuple[float, Floats, Floats]:
        """The loss, its gradient and its Hessian."""
        chance, loss = self.chances(parameters)
        gap = chance - (self.codes[:, None] == np.arange(1, self.lines + 1))
        gradient = self.weight @ np.concatenate([gap, gap * self.x], axis=1)
        both = np.concatenate([chance, chance * self.x], axis=1)
        found: Floats = -(both * self.weight[:, None]).T @ both
        k = np.arange(self.lines)
        mean, square = (np.asarray(self.weight @ (chance * self.x**power)) for power in (1, 2))
        found[k, k] += self.weight @ chance
        found[k, k + self.lines] += mean
        found[k + self.lines, k] += mean
        found[k + self.lines, k + self.lines] += square
        return float(loss), gradient, found

    def fit(self, start: Floats, free: NDArray[np.bool_]) -> tuple[Floats, float, bool]:
        """The most likely free parameters, the loss there, and whether it is curved in every direction, as it must."""
        total, at = float(self.weight.sum()), start.copy()
        if not free.any():
            return at, float(self.chances(at)[1]), True

        def derivatives(values: Floats) -> tuple[float, Floats, Floats]:
            at[free] = values
            loss, gradient, information = self._derivatives(at)
            return loss, gradient[free], information[np.ix_(free, free)]

        fit = minimum(derivatives, start[free], total)
        at[free] = fit.coefficients
        scale = np.concatenate([np.ones(self.lines), np.maximum(self.x.std(axis=0), 1e-300)])[free]
        curved = fit.curvature / np.outer(scale, scale) / total
        return at, fit.loss, bool(np.linalg.eigvalsh(curved)[0] > FLAT)

    def limits(
        self, best: Floats, free: NDArray[np.bool_], which: int, rise: float, step: float
    ) -> tuple[float, float]:
        """Where the profile loss of one parameter is `rise` above its minimum; infinite where that is far away."""
        limit = float(self.chances(best)[1]) + rise
        others = free.copy()
        others[which] = False
        return tuple(self._edge(best, others, which, limit, side * step) for side in (-1.0, 1.0))  # type: ignore[return-value]

    def _moved(self, start: Floats, which: int, value: float) -> Floats:
        """The same parameters with another value of one; a line of another slope turns about where its class varies."""
        moved = start.copy()
        moved[which] = value
        if which >= self.lines:
            k = which - self.lines
            chance = self.chances(start)[0][:, k]
            varies = self.weight * chance * (1 - chance)
            middle = varies @ self.x[:, k] / max(float(varies.sum()), 1e-300)
            moved[k] += (start[which] - value) * float(middle)
        return moved

    def _edge(self, best: Floats, others: NDArray[np.bool_], which: int, limit: float, step: float) -> float:
        warm = best

        def excess(value: float) -> float:
            nonlocal warm
            warm, loss, found = self.fit(self._moved(warm, which, value), others)
            if not found:
                again, other, _ = self.fit(self._moved(best, which, value), others)
                warm, loss = (again, other) if other < loss else (warm, loss)
            return loss - limit

        return crossing(excess, float(best[which]), step)


#: Bounds of the inverse temperature. Derived: with log probabilities of up to 87, the first makes all probabilities
#: equal to 1e-5, the second makes one of them 1 unless log probabilities agree to 1e-5.
LOWEST, HIGHEST = 1e-7, 1e7

#: Ridge on b, per unit of weight and squared largest logit: gives separable data a finite optimum. Derived: it moves
#: others by less than 1e-10.
RIDGE = 1e-14

#: Rows of the first guess, fewer where that many logits make up less. Speed: it leaves two passes over all rows; no
#: result depends on it.
_SAMPLE, _SAMPLED_LOGITS = 8192, 1 << 20

Derivatives = tuple[float, float, float]


def inverse_temperature(logits: Floats, codes: Codes, weight: Floats | None) -> float:
    """The b that minimises the log loss of softmax(b * logits)."""
    chosen = logits[np.arange(len(logits)), codes]
    guess = 1.0
    step = len(logits) // min(_SAMPLE, max(_SAMPLED_LOGITS // logits.shape[1], 512))
    if step > 1:
        some = slice(None, None, step)
        part = None if weight is None else weight[some]
        guess = _minimum(_softmax_derivatives(logits[some], chosen[some], part), guess, tolerance=1e-3)
    return _minimum(_softmax_derivatives(logits, chosen, weight), guess)


def inverse_temperature_of_cells(x: Floats, weight: Floats, positive: Floats) -> float:
    """The b that minimises the log loss of sigmoid(b * x) for cells of log odds `x`."""
    target = float(positive @ x)
    first, second = weight * x, weight * x * x
    third = second * x
    ridge = RIDGE * float(weight.sum()) * float(np.abs(x).max()) ** 2

    def derivatives(b: float) -> Derivatives:
        p = expit(b * x)
        spread = p * (1 - p)
        slope = float(first @ p) - target + ridge * b
        return slope, float(second @ spread) + ridge, float(third @ (spread * (1 - 2 * p)))

    return _minimum(derivatives, 1.0)


def _softmax_derivatives(logits: Floats, chosen: Floats, weight: Floats | None) -> Callable[[float], Derivatives]:
    """The derivatives of the total log loss, as a function of b."""
    target = _total(weight, chosen)
    largest = max(abs(float(logits.max())), abs(float(logits.min())))
    ridge = RIDGE * _total(weight, np.ones(len(logits))) * largest**2
    fast = compiled(logits.size, saves=20.0) if logits.flags.c_contiguous and logits.dtype == np.float64 else None
    sums_at = _numpy_sums(logits, weight) if fast is None else _compiled_sums(fast, logits, weight)

    def derivatives(b: float) -> Derivatives:
        slope, curvature, third = sums_at(b, b * largest < _SAFE)
        return float(slope) - target + ridge * b, float(curvature) + ridge, float(third)

    return derivatives


def _numpy_sums(logits: Floats, weight: Floats | None) -> Callable[[float, bool], Floats]:
    """The first three derivatives of log sum exp(b logits), summed over rows, and whether b needs no shift of them."""
    size = logits.shape[1]
    rows = max(CHUNK // 4 // size, 16)
    ones = np.ones(size)
    scratch = np.empty((rows, size))

    def sums_at(b: float, safe: bool) -> Floats:  # noqa: FBT001 - two numbers that belong together
        sums = np.zeros(3)
        for start in range(0, len(logits), rows):
            part = logits[start : start + rows]
            shift = 0.0 if safe else part.max(axis=1)
            if not safe:
                part = part - np.reshape(shift, (-1, 1))
            p = np.multiply(part, b, out=scratch[: len(part)])
            np.exp(p, out=p)
            moments = [p @ ones]
            for _ in range(3):
                p *= part
                moments.append(p @ ones)
            mean, square, cube = (moment / moments[0] for moment in moments[1:])
            cumulants = (mean + shift, square - mean**2, cube - 3 * mean * square + 2 * mean**3)
            w = None if weight is None else weight[start : start + rows]
            sums += [_total(w, cumulant) for cumulant in cumulants]
        return sums

    return sums_at


def _compiled_sums(fast: ModuleType, logits: Floats, weight: Floats | None) -> Callable[[float, bool], Floats]:
    """Compiled version of `_numpy_sums`."""
    n, flat = len(logits), logits.reshape(-1)
    weights = np.ones(n) if weight is None else np.ascontiguousarray(weight, np.float64)
    shifts = cache(lambda: logits.max(axis=1))

    def sums_at(b: float, safe: bool) -> Floats:  # noqa: FBT001 - two numbers that belong together
        sums, shift = np.zeros((-(-n // fast.ROWS), 3)), np.empty(0) if safe else shifts()
        fast.temperature(flat, b, shift, weights, sums)
        total = np.ascontiguousarray(sums.T).sum(axis=1)  # in pairs
        total[0] += 0.0 if safe else weights @ shift
        return total

    return sums_at


def _minimum(derivatives: Callable[[float], Derivatives], guess: float, *, tolerance: float = 1e-5) -> float:
    """Where the slope crosses zero: Halley's method on log b, kept inside a bracket that shrinks.

    A step below `tolerance` is the last: what is left is its cube.
    """
    low, high, u = np.log(LOWEST), np.log(HIGHEST), np.log(guess)
    for _ in range(100):
        b = float(np.exp(u))
        slope, curvature, third = derivatives(b)
        if slope == 0:
            break
        low, high = (low, u) if slope > 0 else (u, high)
        step = _halley_step(slope, b * curvature, b * curvature + b * b * third)
        inside = low < u + step < high
        if not inside and low == np.log(LOWEST) and derivatives(LOWEST)[0] >= 0:
            return LOWEST  # the scores point the wrong way
        u = u + step if inside else (low + high) / 2
        if (inside and abs(step) < tolerance) or high - low < 1e-12:
            break
    return float(np.exp(u))


def _halley_step(value: float, first: float, second: float) -> float:
    """Step to the root of an increasing function; Newton's where Halley's is unsafe."""
    if first <= 0:
        return np.inf
    newton = -value / first
    bend = 1 + newton * second / (2 * first)
    return newton / bend if bend > 0.25 else newton


def _total(weight: Floats | None, values: Floats) -> float:
    return float(values.sum() if weight is None else weight @ values)
