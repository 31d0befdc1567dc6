"""A Variational Estimator for Calibration Errors: its figures and tables, beside the published numbers.

    python -m reproduce.variational [--parts figure1,figure3,...] [--effort quick|short|full]
    python -m reproduce.variational --parts bound,table1 --effort full --forget default    # after the map has changed

Writes variational.md, variational.csv and the figures. Every finished cell is kept in the CSV file, so an interrupted
run goes on where it stopped. A cell has the same seed whatever the effort: `quick` runs a few of the cells of `short`
(minutes), and `full` all stored predictions, sizes and repeats (hours). `--forget METHOD` drops the rows of one method
from these parts first, and only what is missing is measured; `--repeats N` leaves out later repeats.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant._atomic_write import replacing
from calibrant.recalibrate import CatBoost, Isotonic, LightGBM, OneVsRest, Temperature
from reproduce import data
from reproduce.nonparametric_maps import NadarayaWatson, Partition
from reproduce.variational_worlds import (
    BINARY,
    MULTICLASS,
    OTHERS,
    SIZES,
    TABLE_1_ROWS,
    TABLE_2,
    draw_binary,
    draw_multiclass,
    draw_other,
)

RESULTS = Path(__file__).with_name("results")
FIELDS = ["part", "world", "classes", "n", "method", "norm", "repeat", "value", "error", "seconds"]
TABLE_1_MAPS: dict[str, Callable[[int], object]] = {
    "default": lambda k: None,
    "WS CatBoost": lambda k: CatBoost(warm_started=True),
    "WS LightGBM": lambda k: LightGBM(warm_started=True),
    "CatBoost": lambda k: CatBoost(warm_started=False),
    "LightGBM": lambda k: LightGBM(warm_started=False),
    "Nadaraya-Watson": lambda k: NadarayaWatson(),
    "TS": lambda k: Temperature(),
    "Isotonic": lambda k: isotonic(k),
    "PartitionWise": lambda k: Partition(),
}
#: Plain boosting takes nine tenths of the time. The full effort runs it in the first repeat of every case, a short one
#: leaves it out where there are many classes, and quick runs have none.
SLOW = ("CatBoost", "LightGBM")
EFFORTS = ("quick", "short", "full")


class Store:
    """Rows of results, appended to a CSV file as they come and known when a run goes on."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, []
        if path.exists():
            with path.open(encoding="utf8", newline="") as file:
                self.rows = [{**row, **_numbers(row)} for row in csv.DictReader(file)]
        self.known = _methods_by_cell(self.rows)
        self._by_cell: dict[int, dict[tuple[str, str], list[dict]]] = {}

    @staticmethod
    def _key(row: dict) -> tuple:
        return tuple(str(row[name]) for name in ("part", "world", "classes", "n", "repeat"))

    def has(self, *methods: str, **head: object) -> bool:
        """Whether this cell is done, with these methods if any are named."""
        return self._key(head) in self.known and self.known[self._key(head)].issuperset(methods)

    def forget(self, part: str, method: str) -> None:
        """Drop what this method found in a part, so that it is measured again."""
        self.rows = [row for row in self.rows if (row["part"], row["method"]) != (part, method)]
        self.known = _methods_by_cell(self.rows)
        with replacing(self.path) as place, place.open("w", encoding="utf8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(
                {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in self.rows
            )

    def add(self, rows: list[dict]) -> None:
        """Keep the rows of one cell, all or none, but those that are known."""
        rows = [row for row in rows if not self.has(row["method"], **row)]
        fresh = not self.path.exists()
        self.path.parent.mkdir(exist_ok=True)
        with self.path.open("a", encoding="utf8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if fresh:
                writer.writeheader()
            writer.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
            file.flush()
            os.fsync(file.fileno())
        self.rows += rows
        for row in rows:
            self.known[self._key(row)].add(row["method"])

    def values(self, what: str = "value", **wanted: object) -> np.ndarray:
        """The column `what` of the rows that agree with `wanted`."""
        by_cell = self._by_cell.setdefault(len(self.rows), {})
        if not by_cell:
            for row in self.rows:
                by_cell.setdefault((row["part"], row["world"]), []).append(row)
        near = by_cell.get((wanted["part"], wanted["world"]), [])
        keep = (row for row in near if all(str(row[name]) == str(value) for name, value in wanted.items()))
        return np.array([row[what] for row in keep], dtype=float)


def _methods_by_cell(rows: list[dict]) -> defaultdict[tuple, set[str]]:
    found: defaultdict[tuple, set[str]] = defaultdict(set)
    for row in rows:
        found[Store._key(row)].add(row["method"])
    return found


def _numbers(row: dict) -> dict:
    return {name: float(row[name]) for name in ("value", "error", "seconds")}


def isotonic(classes: int) -> object:
    return Isotonic() if classes == 2 else OneVsRest(Isotonic())


def binned_l2(f: np.ndarray, y: np.ndarray, seed: int) -> float:
    """The paper's binning baseline for multiclass data: 15 clusters of the vectors."""
    from sklearn.cluster import KMeans

    cluster = KMeans(15, random_state=seed, n_init="auto").fit_predict(f)
    gaps = f - np.eye(f.shape[1])[y]
    sums = np.stack([np.bincount(cluster, gaps[:, k], 15) for k in range(f.shape[1])], axis=1)
    return float(np.linalg.norm(sums, axis=1).sum() / len(y))


def in_sample(f: np.ndarray, y: np.ndarray, norm: float) -> float:
    """Isotonic maps fitted and measured on the same rows: what the paper warns of."""
    wide = f.ndim == 2
    g = isotonic(f.shape[1] if wide else 2).fit(f, y).predict_proba(f)
    if not wide:
        return float((np.sign(g[:, 1] - f) * (y - f)).mean())
    d = g - f
    length = np.linalg.norm(d, axis=1, keepdims=True)
    u = np.divide(d, length, out=np.zeros_like(d), where=length > 0)
    return float((u * (np.eye(f.shape[1])[y] - f)).sum(axis=1).mean())


def of_effort(effort: str, quick: object, short: object, full: object) -> object:
    """The one of three that belongs to the effort."""
    return dict(zip(EFFORTS, (quick, short, full), strict=True))[effort]


def figure1(effort: str, only: str = "") -> Iterator[tuple[dict, Callable[[], list]]]:
    for world in ("calibrated", "over, .4x + .3", "shifted by .02"):
        for n in of_effort(effort, (200, 612), (200, 612, 1069, 2473, 5719, 10000), SIZES):
            for repeat in range(of_effort(effort, 10, 20, 100)):

                def cell(world=world, n=n, repeat=repeat) -> list:
                    f, y = draw_binary(np.random.default_rng([1, n, repeat]), world, n)
                    drawn = cal.Binary(y, f)
                    ways: dict[str, Callable[[], float]] = {
                        "default": lambda: cal.variational_error(drawn, seed=repeat),
                        "isotonic": lambda: cal.variational_error(drawn, recalibrator=Isotonic(), seed=repeat),
                        "isotonic in sample": lambda: in_sample(f, y, 1),
                        "ECE 15": lambda: cal.ece(drawn),
                    }
                    return [(name, "L1", way()) for name, way in ways.items() if only in ("", name)]

                yield {"part": "figure1", "world": world, "classes": 2, "n": n, "repeat": repeat}, cell


def figure3(effort: str, only: str = "") -> Iterator[tuple[dict, Callable[[], list]]]:
    for k in (3, 10):
        for world in ("calibrated", "under", "over"):
            for n in of_effort(effort, (200,), (200, 462, 1069, 2473), SIZES):
                for repeat in range(of_effort(effort, 4, 10, 40)):

                    def cell(world=world, n=n, repeat=repeat, k=k) -> list:
                        f, y = draw_multiclass(np.random.default_rng([3, k, n, repeat]), world, k, n)
                        maps = {"default": None, "isotonic": isotonic(k), "TS": Temperature()}
                        crossed = partial(cal.variational_error, cal.Multiclass(y, f), norm=2, seed=repeat)
                        ways: dict[str, Callable[[], float]] = {
                            name: partial(crossed, recalibrator=map_) for name, map_ in maps.items()
                        }
                        ways["isotonic in sample"] = lambda: in_sample(f, y, 2)
                        ways["k-means 15"] = lambda: binned_l2(f, y, repeat)
                        return [(name, "L2", way()) for name, way in ways.items() if only in ("", name)]

                    yield {"part": "figure3", "world": world, "classes": k, "n": n, "repeat": repeat}, cell


def confidence_cells(part: str, method: str, map_: object, repeats: int) -> Iterator[tuple[dict, Callable[[], list]]]:
    """Over- and underconfidence of Table 2 with one map."""
    for world in TABLE_2:
        for repeat in range(repeats):

            def cell(world=world, repeat=repeat) -> list:
                f, y = draw_binary(np.random.default_rng([2, repeat]), world, 5000)
                total = cal.variational_error(y, f, recalibrator=map_, seed=repeat)
                parts = [(part, total.details[part]) for part in ("overconfidence", "underconfidence")]
                return [(method, name, value) for name, value in [*parts, ("total", total)]]

            yield {"part": part, "world": world, "classes": 2, "n": 5000, "repeat": repeat}, cell


def table2(effort: str) -> Iterator[tuple[dict, Callable[[], list]]]:
    yield from confidence_cells("table2", "default", None, of_effort(effort, 10, 20, 100))


def table2_catboost(effort: str) -> Iterator[tuple[dict, Callable[[], list]]]:
    """Table 2 with the map of the paper; it repeats ten times."""
    ours = CatBoost(warm_started=True)
    yield from confidence_cells("table2_catboost", "WS CatBoost", ours, of_effort(effort, 2, 10, 10))


def bound(effort: str) -> Iterator[tuple[dict, Callable[[], list]]]:
    """The default map over all worlds: is the mean estimate below the truth, and how large is its spread?"""
    sizes = of_effort(
        effort, ((200, 30),), ((200, 250), (1000, 150), (5000, 60)), ((200, 1000), (1000, 400), (5000, 100))
    )
    for n, repeats in sizes:
        for world in BINARY:
            more = 1000 if world == "calibrated" and n == 200 and effort != "quick" else repeats
            for repeat in range(more):

                def cell(world=world, n=n, repeat=repeat) -> list:
                    f, y = draw_binary(np.random.default_rng([4, n, repeat]), world, n)
                    found = cal.estimators.variational_errors(y, f, norms=[1, "squared", "kl"], seed=repeat)
                    return [("default", name, e) for name, e in zip(("L1", "squared", "KL"), found, strict=True)]

                yield {"part": "bound", "world": world, "classes": 2, "n": n, "repeat": repeat}, cell
        for k in (3, 10) if effort != "quick" else (3,):
            for world in MULTICLASS:
                some = {200: 200, 1000: 40, 5000: 30} if world == "calibrated" else {200: 25, 1000: 15, 5000: 10}
                for repeat in range(of_effort(effort, 5, some[n], repeats)):

                    def cell(world=world, n=n, repeat=repeat, k=k) -> list:
                        f, y = draw_multiclass(np.random.default_rng([5, k, n, repeat]), world, k, n)
                        found = cal.estimators.variational_errors(cal.Multiclass(y, f), norms=[1, 2], seed=repeat)
                        return [("default", name, e) for name, e in zip(("L1", "L2"), found, strict=True)]

                    yield {"part": "bound", "world": world, "classes": k, "n": n, "repeat": repeat}, cell
    yield from other_bounds(effort)


def other_bounds(effort: str) -> Iterator[tuple[dict, Callable[[], list]]]:
    """The same in worlds that the paper does not have."""
    for number, (world, (k, _)) in enumerate(OTHERS.items()):
        for n, repeats in ((300, 400 if k == 2 else 40), (3000, 100 if k == 2 else 40)):
            for repeat in range(of_effort(effort, 5 if n == 300 else 0, repeats, repeats)):

                def cell(world=world, n=n, repeat=repeat, k=k, number=number) -> list:
                    f, y, weight = draw_other(np.random.default_rng([6, number, n, repeat]), world, n)
                    rows = cal.Binary(y, f, weight=weight) if k == 2 else cal.Multiclass(y, f, weight=weight)
                    norms = {"L1": 1, "squared": "squared", "KL": "kl"} if k == 2 else {"L1": 1, "L2": 2}
                    found = cal.estimators.variational_errors(rows, norms=list(norms.values()), seed=repeat)
                    return [("default", name, e) for name, e in zip(norms, found, strict=True)]

                yield {"part": "bound", "world": world, "classes": k, "n": n, "repeat": repeat}, cell


def plain_boosting(effort: str, classes: int, repeat: int) -> bool:
    """Whether boosting without a warm start is run: see `SLOW`."""
    return bool(of_effort(effort, False, classes <= 4, repeat == 0))


def table1(effort: str, only: str = "") -> Iterator[tuple[dict, Callable[[], list]]]:
    """The protocol of Table 1 on real predictions: nine maps, or one of them; the same folds."""
    from benchmarks.variational_cases import binary_cases, multiclass_cases

    if data.folder("classification") is None:
        return
    binary, several = list(binary_cases(TABLE_1_ROWS)), list(multiclass_cases(TABLE_1_ROWS, TABLE_1_ROWS))
    cases = of_effort(effort, binary[::24] + several[1:2], binary[::8] + several[1::7], binary + several)
    for name, p, y in cases:
        classes = 2 if p.ndim == 1 else p.shape[1]
        for repeat in range(of_effort(effort, 1, 1, 10)):

            def cell(p=p, y=y, classes=classes, repeat=repeat) -> list:
                rows = cal.Binary(y, p) if classes == 2 else cal.Multiclass(y, p)
                found = []
                for method, make in TABLE_1_MAPS.items():
                    slow = method in SLOW and not plain_boosting(effort, classes, repeat)
                    if slow or only not in ("", method):
                        continue
                    start = time.process_time()
                    # The length of one number is the same in every norm, so that L2 is L1 of two classes in the paper.
                    norms = [1, 2 if classes > 2 else 1, "squared"]
                    estimates = cal.estimators.variational_errors(
                        rows, norms=norms, recalibrator=make(classes), seed=repeat
                    )
                    seconds = time.process_time() - start
                    names = ("L1", "L2", "squared")
                    found += [(method, norm, e, seconds) for norm, e in zip(names, estimates, strict=True)]
                return found

            yield {"part": "table1", "world": name, "classes": classes, "n": len(y), "repeat": repeat}, cell


PARTS = {
    "figure1": figure1,
    "figure3": figure3,
    "table2": table2,
    "table2_catboost": table2_catboost,
    "bound": bound,
    "table1": table1,
}


def rows_of(head: dict, cell: Callable[[], list]) -> list[dict]:
    """The rows of one cell."""
    rows = []
    for method, norm, value, *seconds in cell():
        known = isinstance(value, cal.Estimate) and value.details
        error = value.details["standard_error"] if known else float("nan")
        took = float(seconds[0]) if seconds else float("nan")
        rows.append({**head, "method": method, "norm": norm, "value": float(value), "error": error, "seconds": took})
    return rows


@cache
def cells_of(name: str, effort: str, only: str = "") -> list[tuple[dict, Callable[[], list]]]:
    """All cells of a part; those of parts with several methods with one of them if `only` names one."""
    several = only and name in ("figure1", "figure3", "table1")
    return list(PARTS[name](effort, only) if several else PARTS[name](effort))


def measured(name: str, effort: str, only: str, number: int) -> list[dict]:
    """The rows of the cell of this number: what a process of its own is asked for."""
    return rows_of(*cells_of(name, effort, only)[number])


def run(store: Store, name: str, effort: str, processes: int = 1, *, only: str = "", repeats: int = 10**6) -> None:
    """All cells of one part that the store does not hold yet; a cell is the same in whatever process it runs."""
    cells = [cell for cell in enumerate(cells_of(name, effort, only)) if cell[1][0]["repeat"] < repeats]
    missing = [number for number, (head, _) in cells if not store.has(*filter(None, [only]), **head)]
    if processes > 1 and missing:
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
            waiting = [pool.submit(measured, name, effort, only, number) for number in missing]
            for done, each in enumerate(as_completed(waiting), start=len(cells) - len(missing) + 1):
                store.add(each.result())
                show_progress(name, done, len(cells))
    else:
        for done, number in enumerate(missing, start=len(cells) - len(missing) + 1):
            store.add(measured(name, effort, only, number))
            show_progress(name, done, len(cells))


def show_progress(name: str, done: int, cells: int) -> None:
    """A bar in a terminal; a line for each tenth in a file, where a bar would write itself once for each cell."""
    if sys.stderr.isatty():
        bar = "#" * round(30 * done / cells)
        end = "\n" if done == cells else ""
        print(f"\r{name:15} [{bar:30}] {done}/{cells}", end=end, file=sys.stderr, flush=True)
    elif 10 * done // cells > 10 * (done - 1) // cells:
        print(f"{name}: {done} of {cells}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--effort", choices=EFFORTS, default="short")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of variational.md and the figures")
    parser.add_argument("--store", type=Path, default=None, help="finished cells (default: in --out)")
    parser.add_argument("--forget", default="", metavar="METHOD", help="measure this method again")
    parser.add_argument("--repeats", type=int, default=10**6, help="the most repeats of a cell")
    parser.add_argument("--go-on", action="store_true", help="go on with an interrupted --forget")
    parser.add_argument("--note", default="", help="a sentence for the page, where its parts are of several runs")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    final = options.out / "variational.csv"
    store = Store(options.store or final)
    for name in options.parts.split(","):
        if options.forget and not options.go_on:
            store.forget(name, options.forget)
        run(store, name, options.effort, options.processes, only=options.forget, repeats=options.repeats)
    from reproduce.variational_report import write

    write(store, options.out, options.effort, options.note)
    if store.path != final:
        shutil.copyfile(store.path, final)


if __name__ == "__main__":
    main()
