"""Bias of many estimators in many worlds at many sizes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._atomic_write import replacing
from calibrant._version import __version__
from calibrant.data import validation
from calibrant.results.target import Estimator, name_of, norm_of
from calibrant.simulate.estimation_bias import AnyWorld, Bias, estimates
from calibrant.simulate.parallel import run_all


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
        """Write all rows and columns; the file appears whole or not at all."""
        file = io.StringIO()
        writer = csv.DictWriter(file, fieldnames=list(Bias.__dataclass_fields__), lineterminator="\n")
        writer.writeheader()
        writer.writerows(row.to_dict() for row in self.rows)
        with replacing(path) as place:
            place.write_text(file.getvalue(), encoding="utf8", newline="")

    def plot(self, *, ax: Any = None, **style: Any) -> Any:
        """Bias against size, one line per estimator, averaged over worlds (needs matplotlib)."""
        from calibrant.plot.simulations import bias_lines

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
                biases = {row.n: row.bias for row in part.select(estimator=name)}
                lines.append(f"  {name:<{wide}}" + "".join(_percent(biases.get(n)) for n in sizes))
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
        Show a bar on stderr; by default only on a terminal.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.simulate import World, UniformScores
    >>> table = bias_table({"ECE": cal.ece, "sweep": cal.sweep_ece}, [World(UniformScores())], [100, 200], repeats=50)
    >>> print(table)
    UniformScores(), IdentityCurve()
      bias in percent, n =      100      200
      ECE                    +12.61    +8.30
      sweep                   +7.04    +4.70
    """
    validation.seed(seed)
    known = list(worlds.values() if isinstance(worlds, Mapping) else worlds)
    if len({world.name for world in known}) < len(known):
        message = f"Worlds of a table need different names, got {[world.name for world in known]}."
        raise ValueError(message)
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


def _percent(value: float | None) -> str:
    return f"{'':>9}" if value is None else f"{100 * value:>+9.2f}"
