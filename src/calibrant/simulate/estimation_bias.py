"""The bias of an estimator at a sample size, by construction: simulate, estimate, compare with the truth."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibrant.data import validation
from calibrant.data.predictions import Binary, Predictions
from calibrant.numerics.arrays import Floats
from calibrant.numerics.sorted_samples import SortedSamples
from calibrant.results.target import Estimator, batched, name_of, norm_of
from calibrant.simulate.worlds import World

#: Scores per chunk of repeats. Part of the definition of a simulation: another size draws other numbers.
_CHUNK = 1 << 19

#: Scores that are measured at once: several chunks, since every call of NumPy costs as much as many samples.
_BATCH = 1 << 22


class AnyWorld(Protocol):
    """What a simulation needs of a world: a name, samples, and the truth."""

    @property
    def name(self) -> str:
        """Unique among the worlds of a table; part of the seed."""

    def sample(self, n: int, seed: Any = 0) -> Predictions:
        """Independent rows."""

    def true_error(self, norm: Any = 1) -> float:
        """The quantity that is estimated."""


@dataclass(frozen=True)
class Bias:
    """Bias, spread and error of an estimator in a world of known error, with Monte-Carlo standard errors (`_se`).

    Attributes
    ----------
    estimator, world : str
        Their names.
    n, repeats : int
        Rows per sample, samples.
    truth, mean : float
        The true error and the mean estimate.
    bias, sd, rmse : float
        Mean estimate less truth, standard deviation of the estimate, root mean squared error.

    Examples
    --------
    >>> found = Bias.of(np.array([0.1, 0.14, 0.12]), 0.1, estimator="ece", world="mine", n=50)
    >>> found
    <bias +0.0200 ± 0.0115 of ece at n=50 (truth 0.1000, sd 0.0200, rmse 0.0258, 3 repeats)>
    """

    estimator: str
    world: str
    n: int
    repeats: int
    truth: float
    mean: float
    bias: float
    bias_se: float
    sd: float
    sd_se: float
    rmse: float
    rmse_se: float

    @classmethod
    def of(cls, estimates: Floats, truth: float, *, estimator: str, world: str, n: int) -> Bias:
        """Summary of simulated estimates; standard errors of sd and rmse by the delta method."""
        repeats = len(estimates)
        mean = float(estimates.mean())
        centred, errors = (estimates - mean) ** 2, (estimates - truth) ** 2
        sd, rmse = float(np.sqrt(centred.sum() / max(repeats - 1, 1))), float(np.sqrt(errors.mean()))
        root = np.sqrt(repeats)
        return cls(
            estimator=estimator,
            world=world,
            n=n,
            repeats=repeats,
            truth=truth,
            mean=mean,
            bias=mean - truth,
            bias_se=sd / root,
            sd=sd,
            sd_se=float(centred.std() / (2 * sd * root)) if sd > 0 else 0.0,
            rmse=rmse,
            rmse_se=float(errors.std() / (2 * rmse * root)) if rmse > 0 else 0.0,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        return (
            f"<bias {self.bias:+.4f} ± {self.bias_se:.4f} of {self.estimator} at n={self.n:_} "
            f"(truth {self.truth:.4f}, sd {self.sd:.4f}, rmse {self.rmse:.4f}, {self.repeats:_} repeats)>"
        )


def bias(
    estimator: Estimator,
    world: AnyWorld,
    n: int,
    *,
    repeats: int = 1000,
    seed: int = 0,
    norm: Any = None,
) -> Bias:
    r"""Bias of an estimator at sample size n in a world of known error ("bias by construction", BBC).

    .. math:: \frac1m \sum_{j=1}^m \hat e(D_j) - e, \qquad D_1, \dots, D_m \text{ independent samples of size } n

    Parameters
    ----------
    estimator : callable
        From predictions to a number: any function of this package, `functools.partial` of one, or your own. Those that
        declare it (`ece`, `mce`, `debiased_ece`, `sweep_ece`, `kde_ece`) run on all samples at once.
    world : World, MulticlassWorld, RegressionWorld or PUWorld
    n, repeats, seed : int
        Rows per sample, number of samples, and random seed.
    norm : optional
        The truth is ``world.true_error(norm)``. By default the norm of the estimator.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer (2022), eq. 5.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.simulate import World, bias, UniformScores
    >>> bias(cal.ece, World(UniformScores()), 200, repeats=100)
    <bias +0.0856 ± 0.0016 of ece at n=200 (truth 0.0000, sd 0.0164, rmse 0.0871, 100 repeats)>
    """
    values = estimates({"": estimator}, world, n, repeats=repeats, seed=seed)[""]
    truth = world.true_error(norm_of(estimator) if norm is None else norm)
    return Bias.of(values, truth, estimator=name_of(estimator), world=world.name, n=n)


def estimates(
    estimators: Mapping[str, Estimator], world: AnyWorld, n: int, *, repeats: int = 1000, seed: int = 0
) -> dict[str, Floats]:
    """Each estimator on `repeats` samples of `n` rows: the same samples for all of them.

    >>> import calibrant as cal
    >>> from calibrant.simulate import World, UniformScores
    >>> estimates({"ECE": cal.ece}, World(UniformScores()), 100, repeats=3)["ECE"].round(3)
    array([0.129, 0.111, 0.108])
    """
    validation.whole("n", n)
    validation.whole("repeats", repeats)
    validation.seed(seed)
    parts = [_estimates_of(estimators, batch) for batch in _joined(_samples(world, n, repeats, seed))]
    return {name: np.concatenate([part[name] for part in parts]) for name in estimators}


@dataclass(frozen=True, eq=False)
class _Matrices:
    """Samples of a binary world, one to a row."""

    scores: Floats
    outcomes: NDArray[np.int8]

    def one_by_one(self) -> list[Predictions]:
        return [Binary(outcome, score) for outcome, score in zip(self.outcomes, self.scores, strict=True)]


@dataclass(frozen=True, eq=False)
class _Others:
    """Samples of any other world."""

    samples: list[Predictions]

    def one_by_one(self) -> list[Predictions]:
        return self.samples


def _samples(world: AnyWorld, n: int, repeats: int, seed: int) -> Iterator[_Matrices | _Others]:
    """Chunks with a seed of their own, made of the seed, the world's name, n and the chunk's number."""
    rows = max(1, _CHUNK // n)
    key = zlib.crc32(world.name.encode())
    for number, start in enumerate(range(0, repeats, rows)):
        size = min(rows, repeats - start)
        sequence = np.random.SeedSequence(seed, spawn_key=(key, n, number))
        if isinstance(world, World):
            yield _Matrices(*world.draw(np.random.default_rng(sequence), (size, n)))
        else:
            yield _Others([world.sample(n, seed=child) for child in sequence.spawn(size)])


def _joined(chunks: Iterator[_Matrices | _Others]) -> Iterator[_Matrices | _Others]:
    """The same samples in larger batches."""
    waiting: list[_Matrices] = []
    for chunk in chunks:
        if isinstance(chunk, _Others):
            yield chunk
            continue
        waiting.append(chunk)
        if sum(one.scores.size for one in waiting) + chunk.scores.size > _BATCH:
            yield _together(waiting)
            waiting = []
    if waiting:
        yield _together(waiting)


def _together(chunks: list[_Matrices]) -> _Matrices:
    if len(chunks) == 1:
        return chunks[0]
    return _Matrices(
        np.concatenate([chunk.scores for chunk in chunks]), np.concatenate([chunk.outcomes for chunk in chunks])
    )


def _estimates_of(estimators: Mapping[str, Estimator], chunk: _Matrices | _Others) -> dict[str, Floats]:
    at_once = {name: batched(estimator) for name, estimator in estimators.items()}
    values: dict[str, Floats] = {}
    if isinstance(chunk, _Matrices) and any(at_once.values()):
        samples = SortedSamples.of(chunk.scores, chunk.outcomes)
        values = {name: function(samples) for name, function in at_once.items() if function is not None}
    others = {name: estimator for name, estimator in estimators.items() if name not in values}
    rows = chunk.one_by_one() if others else []
    for name, estimator in others.items():
        values[name] = np.array([float(estimator(row)) for row in rows])
    return values
