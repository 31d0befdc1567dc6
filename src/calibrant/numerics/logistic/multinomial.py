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

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.acceleration import compiled
from calibrant.numerics.arrays import CHUNK, Codes, Floats
from calibrant.numerics.special import expit

#: Numbers worked on at once, so that a pass stays in the cache.
_BLOCK = 1 << 16

#: The most parameters of a dense preconditioner; more get one block per class, and more classes than `_BLOCKS` only
#: a diagonal.
_DENSE, _BLOCKS = 700, 200

#: Rows a dense preconditioner and one of blocks are built from, and either when it is rebuilt.
_DENSE_ROWS, _BLOCK_ROWS, _THOROUGH_ROWS = 2500, 800, 20_000


@dataclass(frozen=True)
class Penalty:
    """What the squares of the parameters cost: no factor 1/2."""

    intercept: float
    diagonal: float
    off_diagonal: float

    def of_matrix(self, classes: int) -> Floats:
        """The cost of each parameter of [A, b], where A is any matrix: (K, K + 1)."""
        cost = np.full((classes, classes + 1), self.off_diagonal)
        np.fill_diagonal(cost, self.diagonal)
        cost[:, -1] = self.intercept
        return cost


class AffineLogLoss(ABC):
    """Penalised log loss of an affine map of log probabilities; what depends on its shape is left to subclasses.

    Parameters
    ----------
    z : array of shape (K, n)
        Log probabilities, class by row.
    codes : array of shape (n,)
        Outcomes.
    weight : array of shape (n,), optional
        Row weights.
    penalty : Penalty
        Cost of the parameters.
    """

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

    @property
    def start(self) -> Floats:
        """No change: A = 0, b = 0."""
        return np.zeros(self.cost.size)

    def evaluate(self, theta: Floats) -> tuple[float, Floats]:
        """Value and gradient at `theta`."""
        theta = theta.reshape(self.cost.shape)
        total, pulled = self._normaliser(theta)
        gradient = 2 * self.cost * theta - self._observed + pulled
        value = total - self._chosen - float(np.vdot(theta, self._observed)) + float(np.vdot(self.cost, theta**2))
        return value, gradient.ravel()

    def hessian_times(self, direction: Floats) -> Floats:
        """Hessian at the last evaluated point, times a direction."""
        direction = direction.reshape(self.cost.shape)
        product = 2 * self.cost * direction
        for rows in self._blocks:
            p = self._p[:, rows]
            change = self._push(direction, rows)
            mean = np.einsum("kn,kn->n", p, change)
            mean /= self.share[rows]
            change -= mean
            change *= p
            product += self._pull(change, rows)
        return product.ravel()

    def preconditioner(self, *, thorough: bool = False) -> Callable[[Floats], Floats]:
        """An approximation of the inverse Hessian at the last evaluated point, from some rows or more of them."""
        dense = self.cost.size <= _DENSE
        sample = _THOROUGH_ROWS if thorough else _DENSE_ROWS if dense else _BLOCK_ROWS
        rows = slice(None, None, max(self.z.shape[1] // sample, 1))
        share = self.share[rows]
        scale = 1 / share.sum()
        p, share = self._p[:, rows] * scale, share * scale
        if dense:
            inverse = _inverse(self._dense(p, share, rows) + np.diag(2 * self.cost.ravel()))
            return lambda gradient: inverse @ gradient
        return self._structured(p, share, rows)

    def _normaliser(self, theta: Floats) -> tuple[float, Floats]:
        """The logs of the normalising sums of all rows, by their share, and its gradient; keeps the probabilities."""
        total, gradient = 0.0, np.zeros(self.cost.shape)
        for rows in self._blocks:
            part, pulled = self._of_rows(theta, rows)
            total += part
            gradient += pulled
        return total, gradient

    def _of_rows(self, theta: Floats, rows: slice) -> tuple[float, Floats]:
        """The same of some rows."""
        share = self.share[rows]
        p = self._push(theta, rows)
        p += self.z[:, rows]
        top = p.max(axis=0)
        p -= top
        np.exp(p, out=p)
        sums = p.sum(axis=0)
        p *= share / sums
        self._p[:, rows] = p
        return float(share @ (np.log(sums) + top)), self._pull(p, rows)

    @abstractmethod
    def _costs(self, penalty: Penalty) -> Floats:
        """Cost of each parameter, in the shape of the parameters."""

    @abstractmethod
    def _push(self, theta: Floats, rows: slice) -> Floats:
        """A z + b for some rows, as a new array (K, m)."""

    @abstractmethod
    def _pull(self, weights: Floats, rows: slice) -> Floats:
        """The transpose of `_push`: from (K, m) to the shape of the parameters."""

    @abstractmethod
    def _dense(self, p: Floats, share: Floats, rows: slice) -> Floats:
        """Hessian of the log loss from some rows; `p` holds their probabilities times their share."""

    @abstractmethod
    def _structured(self, p: Floats, share: Floats, rows: slice) -> Callable[[Floats], Floats]:
        """A preconditioner that ignores the curvature between classes."""


class MatrixLogLoss(AffineLogLoss):
    """A is any matrix; the parameters are [A, b], of shape (K, K + 1)."""

    def __init__(self, z: Floats, codes: Codes, weight: Floats | None, penalty: Penalty) -> None:
        self._x = np.concatenate([z, np.ones((1, z.shape[1]))])
        super().__init__(z, codes, weight, penalty)

    def _costs(self, penalty: Penalty) -> Floats:
        return penalty.of_matrix(self.classes)

    def _push(self, theta: Floats, rows: slice) -> Floats:
        return theta @ self._x[:, rows]

    def _pull(self, weights: Floats, rows: slice) -> Floats:
        return weights @ self._x[:, rows].T

    def _dense(self, p: Floats, share: Floats, rows: slice) -> Floats:
        x, width = self._x[:, rows], self.classes + 1
        spread = p[:, None, :] * x[None]
        flat = (spread / np.sqrt(share)).reshape(-1, x.shape[1])
        hessian = -(flat @ flat.T)
        for k in range(self.classes):
            block = slice(k * width, (k + 1) * width)
            hessian[block, block] += spread[k] @ x.T
        return hessian

    def _structured(self, p: Floats, share: Floats, rows: slice) -> Callable[[Floats], Floats]:
        x, curvature = self._x[:, rows], p * (1 - p / share)
        if self.classes > _BLOCKS:
            diagonal = (curvature @ (x**2).T + 2 * self.cost).ravel()
            return lambda gradient: gradient / np.maximum(diagonal, np.finfo(np.float64).tiny)
        blocks = np.empty((self.classes, len(x), len(x)))
        for k in range(self.classes):
            rooted = x * np.sqrt(curvature[k])
            blocks[k] = _inverse(rooted @ rooted.T + np.diag(2 * self.cost[k]))
        return lambda gradient: (blocks @ gradient.reshape(*self.cost.shape, 1)).ravel()


class VectorLogLoss(AffineLogLoss):
    """A is a diagonal; the parameters are [diagonal, b], of shape (2, K)."""

    def _costs(self, penalty: Penalty) -> Floats:
        return np.repeat([[penalty.diagonal], [penalty.intercept]], self.classes, axis=1)

    def _normaliser(self, theta: Floats) -> tuple[float, Floats]:
        plain = self.z.flags.c_contiguous and self.z.dtype == np.float64
        fast = compiled(self.z.size, saves=40.0) if plain else None
        if fast is None:
            return super()._normaliser(theta)
        slope, intercept, pulled = 1 + theta[0], theta[1].copy(), np.zeros(self.cost.shape)
        safe = bool(np.max(np.abs(slope) * self._largest + np.abs(intercept)) < 300)
        return float(fast.vector_scaling(self.z, slope, intercept, self.share, safe, self._p, pulled)), pulled

    @cached_property
    def _largest(self) -> float:
        """The largest size of a log probability."""
        return max(abs(float(self.z.max())), abs(float(self.z.min())))

    def _push(self, theta: Floats, rows: slice) -> Floats:
        logits = self.z[:, rows] * theta[0][:, None]
        logits += theta[1][:, None]
        return logits

    def _pull(self, weights: Floats, rows: slice) -> Floats:
        return np.stack([np.einsum("kn,kn->k", weights, self.z[:, rows]), weights.sum(axis=1)])

    def _dense(self, p: Floats, share: Floats, rows: slice) -> Floats:
        z, size = self.z[:, rows], self.classes
        spread = np.concatenate([p * z, p])
        flat = spread / np.sqrt(share)
        hessian = -(flat @ flat.T)
        first, second = np.arange(size), np.arange(size, 2 * size)
        cross = spread[:size].sum(axis=1)
        hessian[first, first] += np.einsum("kn,kn->k", spread[:size], z)
        hessian[second, second] += p.sum(axis=1)
        hessian[first, second] += cross
        hessian[second, first] += cross
        return hessian

    def _structured(self, p: Floats, share: Floats, rows: slice) -> Callable[[Floats], Floats]:
        z, curvature = self.z[:, rows], p * (1 - p / share)
        moments = [np.einsum("kn,kn->k", curvature, z**power) for power in (2, 1, 0)]
        blocks = np.empty((self.classes, 2, 2))
        blocks[:, 0, 0] = moments[0] + 2 * self.cost[0]
        blocks[:, 0, 1] = blocks[:, 1, 0] = moments[1]
        blocks[:, 1, 1] = moments[2] + 2 * self.cost[1]
        inverse = np.stack([_inverse(block) for block in blocks])
        return lambda gradient: (inverse @ gradient.reshape(2, -1).T[..., None])[..., 0].T.ravel()


def _inverse(matrix: Floats) -> Floats:
    """Inverse of a positive definite matrix, lifted where rounding has made it less than that."""
    from scipy.linalg import lapack

    lift = np.finfo(np.float64).eps * float(np.trace(matrix)) + np.finfo(np.float64).tiny
    for _ in range(40):
        factor, failed = lapack.dpotrf(matrix + lift * np.eye(len(matrix)), lower=1)
        if not failed:
            inverse, _ = lapack.dpotri(factor, lower=1)
            return np.tril(inverse) + np.tril(inverse, -1).T
        lift *= 10
    return np.diag(1 / np.maximum(np.diag(matrix), lift))


#: Newton steps, and halvings of each.
STEPS, HALVINGS = 60, 30

#: A gradient per unit of weight below which a fit has converged.
TOLERANCE = 1e-9

#: Curvatures per unit of weight below this are none; a class of one row in a million has more.
FLAT = 3e-8

#: Standardised slopes beyond this are infinite: outcomes are separated.
FARTHEST = 60.0


@dataclass(frozen=True, eq=False)
class MultinomialLines:
    r"""Rows with K - 1 variables x and an outcome 0 .. K - 1, under

    .. math:: \log \frac{P(Y = k)}{P(Y = 0)} = a_k + b_k x_k, \qquad k = 1, \dots, K - 1.

    Parameters are the intercepts and then the slopes, 2 (K - 1) of them.

    Attributes
    ----------
    x : array (n, K - 1)
    codes : array (n,)
    weight : array (n,)
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
        chance, _ = self.chances(parameters)
        both = np.concatenate([chance, chance * self.x], axis=1)
        found: Floats = -(both * self.weight[:, None]).T @ both
        k = np.arange(self.lines)
        mean, square = (np.asarray(self.weight @ (chance * self.x**power)) for power in (1, 2))
        found[k, k] += self.weight @ chance
        found[k, k + self.lines] += mean
        found[k + self.lines, k] += mean
        found[k + self.lines, k + self.lines] += square
        return found

    def fit(self, start: Floats, free: NDArray[np.bool_]) -> tuple[Floats, float, bool]:
        """The most likely values of the free parameters, the loss there, and whether they were found."""
        at = start.copy()
        loss = float(self.chances(at)[1])
        total = float(self.weight.sum())
        for _ in range(STEPS):
            gradient = (self.weight @ self.residuals(at))[free]
            if not len(gradient) or np.abs(gradient).max() <= TOLERANCE * total:
                return at, loss, self._determined(at, free)
            step = np.linalg.lstsq(self.information(at)[np.ix_(free, free)], gradient, rcond=1e-12)[0]
            for _ in range(HALVINGS):
                following = at.copy()
                following[free] += step
                lower = float(self.chances(following)[1])
                if lower <= loss + 1e-12 * abs(loss):
                    break
                step = step / 2
            at, loss = following, lower
            if np.abs(at[self.lines :] * self.x.std(axis=0)).max() > FARTHEST:
                return at, loss, False
        return at, loss, bool(np.abs((self.weight @ self.residuals(at))[free]).max() <= 1e-5 * total)

    def _determined(self, at: Floats, free: NDArray[np.bool_]) -> bool:
        """Whether the loss is curved in every direction; where outcomes are separated, it is flat in one."""
        scale = np.concatenate([np.ones(self.lines), np.maximum(self.x.std(axis=0), 1e-300)])[free]
        curved = self.information(at)[np.ix_(free, free)] / np.outer(scale, scale) / float(self.weight.sum())
        return not len(scale) or bool(np.linalg.eigvalsh(curved)[0] > FLAT)

    def limits(
        self, best: Floats, free: NDArray[np.bool_], which: int, rise: float, step: float
    ) -> tuple[float, float]:
        """Where the profile loss of one parameter is `rise` above its minimum; infinite where that is far away."""
        lowest = float(self.chances(best)[1])
        others = free.copy()
        others[which] = False
        return tuple(self._edge(best, others, which, lowest + rise, side * step) for side in (-1.0, 1.0))  # type: ignore[return-value]

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
        from scipy.optimize import brentq

        warm = best.copy()
        known = {float(best[which]): float(self.chances(best)[1]) - limit}

        # Each point is fitted once: from another start, a fit that runs off to infinity ends at a slightly other loss.
        def excess(value: float) -> float:
            nonlocal warm
            if value not in known:
                warm, loss, found = self.fit(self._moved(warm, which, value), others)
                if not found:
                    again, other, _ = self.fit(self._moved(best, which, value), others)
                    warm, loss = (again, other) if other < loss else (warm, loss)
                known[value] = loss - limit
            return known[value]

        near, far = float(best[which]), float(best[which]) + step
        for _ in range(40):
            if excess(far) > 0:
                return float(brentq(excess, near, far, xtol=1e-8 * max(1.0, abs(far)), rtol=1e-10))
            near, far, step = far, far + 2 * step, 2 * step
        return float(np.sign(step) * np.inf)


#: Bounds of the inverse temperature.
LOWEST, HIGHEST = 1e-7, 1e7

#: Ridge on b, per unit of weight and squared largest logit: gives separable data a finite optimum and moves
#: others by less than 1e-10.
RIDGE = 1e-14

#: Rows of the first guess, fewer where that many logits make up less.
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
        slope, curvature, third = sums_at(b, b * largest < 300)
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
    """The same by a compiled loop."""
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
    """Step to the root of a rising function; Newton's where Halley's is unsafe."""
    if first <= 0:
        return np.inf
    newton = -value / first
    bend = 1 + newton * second / (2 * first)
    return newton / bend if bend > 0.25 else newton


def _total(weight: Floats | None, values: Floats) -> float:
    return float(values.sum() if weight is None else weight @ values)
