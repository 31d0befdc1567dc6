"""Do stored results still come out? A random sample of their cells is run again: `make drift`.

    python -m reproduce.drift [--cells 20] [--seed 0]

A cell is one repeat of the variational paper, one estimator, fit and size of the bias paper, or one arm, world and size
of the positive-unlabeled paper. Seeds are those of the stored run, so most numbers come out to the last digit; what
is tested is that none has moved by more than its Monte-Carlo error explains: |new - stored| / error is compared with
the two-sided normal quantile of 1 % divided by the number of comparisons. Cells that need a trained network or plain
boosting are left out, as minutes each are too much for a sample.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import norm

from calibrant import simulate as sim

RESULTS = Path(__file__).with_name("results")
#: A difference below this share of the number is rounding, whatever its error.
ROUNDING = 2e-5
SYNTHETIC_PU = ("less", "better", "calibrated")


@dataclass(frozen=True)
class Number:
    """A number that was measured again: its name, the new and the stored value, and the error of their difference."""

    name: str
    new: float
    stored: float
    error: float

    @property
    def distance(self) -> float:
        """The difference in standard errors; 0 where the two are equal up to rounding."""
        if abs(self.new - self.stored) <= ROUNDING * max(abs(self.stored), 1e-3):
            return 0.0
        return abs(self.new - self.stored) / self.error if self.error > 0 else math.inf


def rows_of(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf8") as file:
        return list(csv.DictReader(file))


def judged(numbers: list[Number]) -> int:
    """Print what moved; 1 if a number moved by more than its error explains, else 0."""
    if not numbers:
        print("There are no stored numbers to compare with.")
        return 0
    limit = float(norm.isf(0.005 / len(numbers)))
    far = sorted((n for n in numbers if n.distance > limit), key=lambda n: -n.distance)
    moved = sum(number.distance > 0 for number in numbers)
    beyond = sum(number.distance > 3 for number in numbers)
    print(
        f"{len(numbers)} numbers compared with stored ones: {len(numbers) - moved} equal up to rounding, {beyond} more "
        f"than 3 standard errors away, {len(far)} beyond {limit:.1f}, which chance exceeds in 1 of 100 runs."
    )
    for number in far:
        print(f"DRIFT {number.name}: {number.new:.6g}, stored {number.stored:.6g}, {number.distance:.1f} errors")
    return int(bool(far))


# --- quick runs -----------------------------------------------------------------------------------------------------


def shared(new: Path, stored: Path) -> list[Number]:
    """The numbers that two folders of results share."""
    return [
        *_variational_means(rows_of(new / "variational.csv"), rows_of(stored / "variational.csv")),
        *(
            number
            for name in ("figure2", "figure4", "figure6", "figures7to12")
            for number in _biases(rows_of(new / f"bias/{name}.csv"), rows_of(stored / f"bias/{name}.csv"), name)
        ),
        *_unlabeled(rows_of(new / "positive_unlabeled.csv"), rows_of(stored / "positive_unlabeled.csv")),
    ]


def _variational_means(new: list[dict[str, str]], stored: list[dict[str, str]]) -> Iterator[Number]:
    """Means over the repeats that both have; the error is the spread over repeats, of a single one its own error."""
    keys = ("part", "world", "classes", "n", "method", "norm")

    def grouped(rows: list[dict[str, str]], column: str) -> dict[tuple[str, ...], dict[str, float]]:
        found: dict[tuple[str, ...], dict[str, float]] = {}
        for row in rows:
            found.setdefault(tuple(row[k] for k in keys), {})[row["repeat"]] = float(row[column])
        return found

    before, errors = grouped(stored, "value"), grouped(stored, "error")
    for key, values in grouped(new, "value").items():
        both = sorted(values.keys() & before.get(key, {}).keys())
        if not both:
            continue
        several = len(before[key]) > 1
        spread = float(np.std(list(before[key].values()), ddof=1)) if several else errors[key][both[0]]
        means = (float(np.mean([side[repeat] for repeat in both])) for side in (values, before[key]))
        yield Number("variational " + ", ".join(key), *means, error=spread / math.sqrt(len(both)))


def _biases(new: list[dict[str, str]], stored: list[dict[str, str]], name: str) -> Iterator[Number]:
    keys = ("estimator", "world", "n")
    before = {tuple(row[k] for k in keys): row for row in stored}
    for row in new:
        known = before.get(tuple(row[k] for k in keys))
        if known is not None:
            error = float(known["sd"]) * math.sqrt(1 / int(row["repeats"]) + 1 / int(known["repeats"]))
            label = f"bias {name}, " + ", ".join(row[k] for k in keys)
            yield Number(label, float(row["bias"]), float(known["bias"]), error)


def _unlabeled(new: list[dict[str, str]], stored: list[dict[str, str]]) -> Iterator[Number]:
    """Worlds without a trained network; a quick run trains its networks briefly, which are other worlds."""
    keys = ("figure", "world", "arm", "n")
    before = {tuple(row[k] for k in keys): row for row in stored}
    for row in new:
        known = before.get(tuple(row[k] for k in keys))
        if known is not None and row["world"] in SYNTHETIC_PU:
            # a quick run has too few trials to know its own spread, and they are among those of the stored run
            error = float(known["standard_error"]) * math.sqrt(_trials(known) / _trials(row))
            label = "unlabeled figure " + ", ".join(row[k] for k in keys)
            yield Number(label, float(row["mean_abs"]), float(known["mean_abs"]), error)


def _trials(row: dict[str, str]) -> int:
    return int(row.get("trials") or (20 if row["figure"] == "3" else 100))


# --- samples of stored cells ----------------------------------------------------------------------------------------

Cell = tuple[str, Callable[[], list[Number]]]


def cells(results: Path = RESULTS) -> list[Cell]:
    """All stored cells that take seconds to run again."""
    return [*variational_cells(results), *bias_cells(results), *unlabeled_cells(results)]


def variational_cells(results: Path) -> list[Cell]:
    from reproduce import variational

    keys = ("part", "world", "classes", "n", "repeat")
    stored: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows_of(results / "variational.csv"):
        stored.setdefault(tuple(row[k] for k in keys), []).append(row)
    found = []
    for part in ("figure1", "figure3", "table2", "bound"):
        for head, cell in variational.PARTS[part]("short"):
            own = stored.get(tuple(str(head[k]) for k in keys))
            if own:
                name = "variational " + ", ".join(str(head[k]) for k in keys)
                found.append((name, lambda h=head, c=cell, o=own: _variational_again(h, c, o)))
    return found


def _variational_again(head: dict, cell: Callable[[], list], stored: list[dict[str, str]]) -> list[Number]:
    """The error of one repeat is its own standard error; where none was kept, that of a mean of n outcomes."""
    from reproduce.variational import rows_of as measured

    new = {(row["method"], row["norm"]): row["value"] for row in measured(head, cell)}
    numbers = []
    for row in stored:
        error = float(row["error"])
        error = error if error > 0 else 0.5 / math.sqrt(int(row["n"]))
        key = (row["method"], row["norm"])
        name = ", ".join([row["part"], row["world"], row["classes"], row["n"], row["repeat"], *key])
        numbers.append(Number(f"variational {name}", new[key], float(row["value"]), error))
    return numbers


def bias_cells(results: Path) -> list[Cell]:
    from reproduce.bias_grid import ESTIMATORS

    worlds = {world.name: world for world in sim.PAPER_WORLDS.values()}
    worlds |= {twin.name: twin for twin in (world.calibrated() for world in worlds.values())}

    def again(row: dict[str, str], name: str) -> list[Number]:
        world, n = worlds[row["world"]], int(row["n"])
        table = sim.bias_table({row["estimator"]: ESTIMATORS[row["estimator"]]}, [world], [n], repeats=100)
        new = [{k: str(v) for k, v in each.to_dict().items()} for each in table]
        return list(_biases(new, [row], name))

    return [
        (f"bias {name}, {row['estimator']}, {row['world']}, {row['n']}", lambda r=row, f=name: again(r, f))
        for name in ("figure4", "figure6")
        for row in rows_of(results / f"bias/{name}.csv")
    ]


def unlabeled_cells(results: Path) -> list[Cell]:
    rows = [row for row in rows_of(results / "positive_unlabeled.csv") if row["world"] in SYNTHETIC_PU]
    return [
        (f"unlabeled {row['world']}, {row['arm']}, {row['n']}", lambda r=row: _unlabeled_again(r))
        for row in rows
        if row["figure"] == "1" and int(row["n"]) <= 3000
    ]


def _unlabeled_again(row: dict[str, str]) -> list[Number]:
    from reproduce import positive_unlabeled as script

    world = script.WORLDS[row["world"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # ten positives often seem to contradict the prior
        errors = script.repeated(100, lambda rng: script.estimate(world, rng, row["arm"], int(row["n"])))
    new = float(np.abs(errors - world.true_error()).mean())
    name = f"unlabeled figure 1, {row['world']}, {row['arm']}, {row['n']}"
    return [Number(name, new, float(row["mean_abs"]), math.sqrt(2) * float(row["standard_error"]))]


def main(arguments: list[str] | None = None) -> int:
    """1 if a stored number has moved by more than its Monte-Carlo error explains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None, help="of the choice of cells; by default another each time")
    options = parser.parse_args(arguments)
    known = cells()
    rng = np.random.default_rng(options.seed)
    chosen = rng.choice(len(known), min(options.cells, len(known)), replace=False)
    numbers: list[Number] = []
    for at in chosen.tolist():
        name, again = known[at]
        sys.stderr.write(f"{name}\n")
        numbers += again()
    return judged(numbers)


if __name__ == "__main__":
    sys.exit(main())
