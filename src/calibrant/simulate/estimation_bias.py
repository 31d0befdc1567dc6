"""The bias of estimators by simulation: of one in one world, or of many in many worlds at many sizes."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import pickle
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant._atomic_write import replacing
from calibrant._version import __version__
from calibrant.data import validation
from calibrant.data.predictions import Binary, Predictions
from calibrant.data.validation import fail
from calibrant.numerics.arrays import Floats
from calibrant.numerics.equal_mass import SortedSamples
from calibrant.numerics.random_draws import generator
from calibrant.results.target import Estimator, batched, name_of, norm_of
from calibrant.simulate.worlds import World


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
        sd_se = float(centred.std() / (2 * sd * root)) if sd > 0 else 0.0
        rmse_se = float(errors.std() / (2 * rmse * root)) if rmse > 0 else 0.0
        found = mean - truth, sd / root, sd, sd_se, rmse, rmse_se
        return cls(estimator, world, n, repeats, truth, mean, *found)

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return asdict(self)

    def __repr__(self) -> str:
        return (
            f"<bias {self.bias:+.4f} ± {self.bias_se:.4f} of {self.estimator} at n={self.n:_} "
            f"(truth {self.truth:.4f}, sd {self.sd:.4f}, rmse {self.rmse:.4f}, {self.repeats:_} repeats)>"
        )


def bias(
    estimator: Estimator, world: AnyWorld, n: int, *, repeats: int = 1000, seed: int = 0, norm: Any = None
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
    Roelofs, Cain, Shlens, Mozer (2022), eq. 6-7.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.simulate import World, bias, UniformScores
    >>> bias(cal.ece, World(UniformScores()), 200, repeats=100)
    <bias +0.0872 ± 0.0016 of ece at n=200 (truth 0.0000, sd 0.0157, rmse 0.0886, 100 repeats)>
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
    array([0.111, 0.128, 0.199])
    """
    validation.whole("n", n)
    validation.whole("repeats", repeats)
    validation.seed(seed)
    parts = [_estimates_of(estimators, chunk) for chunk in _samples(world, n, repeats, seed)]
    return {name: np.concatenate([part[name] for part in parts]) for name in estimators}


@dataclass(frozen=True)
class BiasTable:
    """One `Bias` for each estimator, world and size. Iterates over them; `select` filters; `str` prints the biases.

    Examples
    --------
    >>> first = Bias.of(np.array([0.1, 0.14]), 0.1, estimator="ece", world="mine", n=50)
    >>> second = Bias.of(np.array([0.1, 0.11]), 0.1, estimator="sweep", world="mine", n=50)
    >>> table = BiasTable((first, second))
    >>> {name: round(value, 6) for name, value in table.mean_absolute_bias().items()}
    {'ece': 0.02, 'sweep': 0.005}
    >>> print(table.select(estimator="sweep"))
    mine
      bias in percent, n =       50
      sweep                   +0.50
    """

    rows: tuple[Bias, ...]

    def __iter__(self) -> Iterator[Bias]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def select(self, *, estimator: str | None = None, world: str | None = None, n: int | None = None) -> BiasTable:
        """The rows of this estimator, world and size; None takes all."""
        wanted = {"estimator": estimator, "world": world, "n": n}
        given = {name: value for name, value in wanted.items() if value is not None}
        return BiasTable(tuple(row for row in self.rows if all(getattr(row, k) == v for k, v in given.items())))

    def mean_absolute_bias(self) -> dict[str, float]:
        """Mean absolute bias over worlds and sizes, per estimator."""
        return {
            name: float(np.mean([abs(row.bias) for row in self.select(estimator=name)]))
            for name in dict.fromkeys(row.estimator for row in self.rows)
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain types only, ready for JSON."""
        return {"rows": [row.to_dict() for row in self.rows]}

    def to_csv(self, path: str | Path) -> None:
        """Write all rows and columns; the file is replaced atomically."""
        file = io.StringIO()
        writer = csv.DictWriter(file, fieldnames=list(Bias.__dataclass_fields__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(row.to_dict() for row in self.rows)
        with replacing(path) as place:
            place.write_text(file.getvalue(), encoding="utf8", newline="")

    def plot(self, *, ax: Any = None, **style: Any) -> Any:
        """Bias against size, one line per estimator, averaged over worlds (needs matplotlib)."""
        from calibrant.plot.validation import bias_lines

        return bias_lines(self, ax=ax, **style)

    def __repr__(self) -> str:
        return f"<BiasTable of {len(self.rows)} rows>"

    def __str__(self) -> str:
        sizes = sorted({row.n for row in self.rows})
        lines = []
        for world in dict.fromkeys(row.world for row in self.rows):
            part = self.select(world=world)
            names = list(dict.fromkeys(row.estimator for row in part))
            wide = max(map(len, [*names, "bias in percent, n ="]))
            lines += [world, f"  {'bias in percent, n =':<{wide}}" + "".join(f"{n:>9,}" for n in sizes)]
            for name in names:
                biases = {row.n: f"{100 * row.bias:+.2f}" for row in part.select(estimator=name)}
                lines.append(f"  {name:<{wide}}" + "".join(f"{biases.get(n, ''):>9}" for n in sizes))
        return "\n".join(lines)


def bias_table(
    estimators: Mapping[str, Estimator],
    worlds: Iterable[AnyWorld] | Mapping[str, AnyWorld],
    sizes: Sequence[int],
    *,
    repeats: int = 1000,
    seed: int = 0,
    norm: Any = None,
    processes: int = 1,
    cache: str | Path | None = None,
    progress: bool | None = None,
) -> BiasTable:
    """Bias of every estimator in every world at every size.

    In one world at one size all estimators see the same samples, whose seed comes from `seed`, the name of the world
    and the size alone. So the numbers are those of `bias`, whatever the number of processes.

    Parameters
    ----------
    estimators : mapping of name to callable
    worlds : worlds, or a mapping to them
        Names must differ.
    sizes : sequence of int
    repeats, seed, norm
        As for `bias`.
    processes : int
        Worlds and sizes run in this many new processes; your script then needs ``if __name__ == "__main__":``.
    cache : path, optional
        A folder that keeps what is finished as JSON, so that an interrupted run continues where it stopped.
    progress : bool, optional
        Show on stderr how many are done; by default only on a terminal.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.simulate import World, UniformScores
    >>> table = bias_table({"ECE": cal.ece, "sweep": cal.sweep_ece}, [World(UniformScores())], [100, 200], repeats=50)
    >>> print(table)
    UniformScores(), IdentityCurve()
      bias in percent, n =      100      200
      ECE                    +12.32    +8.56
      sweep                   +6.15    +4.62
    """
    validation.seed(seed)
    known = list(worlds.values() if isinstance(worlds, Mapping) else worlds)
    if len({world.name for world in known}) < len(known):
        fail(f"Worlds of a table need different names, got {[world.name for world in known]}.", ValueError)
    tasks = [_Simulation(dict(estimators), world, n, repeats, seed, norm) for world in known for n in sizes]
    keys = [{} if cache is None else task.key() for task in tasks]
    found = run_all(_run, tasks, keys, processes=processes, cache=cache, progress=progress)
    return BiasTable(tuple(Bias(**row) for rows in found for row in rows))


@dataclass(frozen=True)
class _Simulation:
    estimators: dict[str, Estimator]
    world: AnyWorld
    n: int
    repeats: int
    seed: int
    norm: Any

    def key(self) -> dict[str, Any]:
        """All that the numbers depend on. Names need not be unique, so it holds each estimator's value on a sample."""
        named = {name: name_of(estimator) for name, estimator in self.estimators.items()}
        sample = self.world.sample(self.n, seed=self.seed)
        values = {name: repr(float(estimator(sample))) for name, estimator in self.estimators.items()}
        settings = {"n": int(self.n), "repeats": self.repeats, "seed": self.seed, "norm": repr(self.norm)}
        return {"calibrant": __version__, "world": repr(self.world), "names": named, "values": values, **settings}


def _run(task: _Simulation) -> list[dict[str, Any]]:
    values = estimates(task.estimators, task.world, task.n, repeats=task.repeats, seed=task.seed)
    rows = []
    for name, estimator in task.estimators.items():
        truth = task.world.true_error(norm_of(estimator) if task.norm is None else task.norm)
        rows.append(Bias.of(values[name], truth, estimator=name, world=task.world.name, n=task.n).to_dict())
    return rows


#: Scores per chunk of repeats. Part of the definition of a simulation: another size draws other numbers.
#: Test: tests/simulate/test_estimation_bias.py::test_the_number_of_scores_in_a_chunk_is_part_of_the_definition.
_CHUNK = 1 << 19

_Chunk = tuple[Floats, NDArray[np.int8]] | list[Predictions]


def _samples(world: AnyWorld, n: int, repeats: int, seed: int) -> Iterator[_Chunk]:
    """Chunks of samples: of a binary world scores and outcomes, a sample to a line; of others a list of predictions."""
    lines, key = max(1, _CHUNK // n), zlib.crc32(world.name.encode())
    for number, start in enumerate(range(0, repeats, lines)):
        size = min(lines, repeats - start)
        sequence = np.random.SeedSequence(seed, spawn_key=(key, n, number))
        if isinstance(world, World):
            yield world.draw(generator(sequence, "samples of a world"), (size, n))
        else:
            yield [world.sample(n, seed=child) for child in sequence.spawn(size)]


def _estimates_of(estimators: Mapping[str, Estimator], chunk: _Chunk) -> dict[str, Floats]:
    values: dict[str, Floats] = {}
    if isinstance(chunk, tuple):
        at_once = {name: batched(estimator) for name, estimator in estimators.items()}
        samples = SortedSamples.of(*chunk) if any(at_once.values()) else None
        values = {name: function(samples) for name, function in at_once.items() if function is not None}
    others = {name: estimator for name, estimator in estimators.items() if name not in values}
    if others and isinstance(chunk, tuple):
        chunk = [Binary(outcome, score) for score, outcome in zip(*chunk, strict=True)]
    return values | {name: np.array([float(estimator(one)) for one in chunk]) for name, estimator in others.items()}


Task = TypeVar("Task")
Rows = list[dict[str, Any]]


def run_all(
    run: Callable[[Task], Rows],
    tasks: Sequence[Task],
    keys: Sequence[dict[str, Any]],
    *,
    processes: int = 1,
    cache: str | Path | None = None,
    progress: bool | None = None,
) -> list[Rows]:
    """`run` of every task, in their order. A task that the cache holds under the same key is read, not run."""
    digests = [hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:32] for key in keys]
    paths = [None if cache is None else Path(cache) / f"{digest}.json" for digest in digests]
    stored = {at: _read(path, key) for at, (path, key) in enumerate(zip(paths, keys, strict=True)) if path is not None}
    results: dict[int, Rows] = {at: rows for at, rows in stored.items() if rows is not None}
    waiting = [at for at in range(len(tasks)) if at not in results]
    shown = sys.stderr.isatty() if progress is None else progress
    for at, rows in _completed(run, tasks, waiting, processes):
        results[at] = rows
        if (path := paths[at]) is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as place:
                place.write_text(json.dumps({"key": keys[at], "rows": rows}), encoding="utf8")
        if shown:
            sys.stderr.write(f"\r{len(results)}/{len(tasks)} simulations" + "\n" * (len(results) == len(tasks)))
            sys.stderr.flush()
    return [results[at] for at in range(len(tasks))]


def _completed(
    run: Callable[[Task], Rows], tasks: Sequence[Task], waiting: list[int], processes: int
) -> Iterator[tuple[int, Rows]]:
    if processes == 1 or len(waiting) < 2:
        for at in waiting:
            yield at, run(tasks[at])
        return
    _require_picklable(tasks[waiting[0]])
    with ProcessPoolExecutor(min(processes, len(waiting)), mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(run, tasks[at]): at for at in waiting}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _require_picklable(task: object) -> None:
    try:
        pickle.dumps(task)
    except Exception as error:
        message = (
            f"This table cannot be sent to another process ({error}). Estimators and curves must be functions of a "
            "module or functools.partial of them, not lambdas; or pass processes=1."
        )
        raise ValueError(message) from error


def _read(path: Path, key: dict[str, Any]) -> Rows | None:
    try:
        stored = json.loads(path.read_text(encoding="utf8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    rows: Rows = stored["rows"]
    return rows if stored["key"] == key else None
