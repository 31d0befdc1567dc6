"""The kinds of source: files, frames and Dask frames, each of which can have work done on its rows."""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v2 as nw

from calibrant.data.validation import InvalidPredictions, fail
from calibrant.scale import paths
from calibrant.scale.checks import Check, Frame, NamedFrame, NotNumbers, bound, first_broken, first_text, text_remedy
from calibrant.scale.duckdb_files import FILE_ROW, FileTable, filtered, read
from calibrant.scale.group_by import Plan, merged

#: Seconds between two questions how far the engine is.
#: Speed: four questions a second cost the engine nothing that can be measured; no result depends on it.
INTERVAL = 0.25

Percent = Callable[[], float | None]
"""How far the engine is with its query, in percent; None or a negative number where it cannot tell."""


class Watch:
    """A bar that counts parts done of parts, and within a part asks the engine how far it is; without one, nothing."""

    def __init__(self, bar: Any = None, parts: int = 0) -> None:
        self.bar = bar
        self.line = None if bar is None else bar.add_task("reading", total=100 * parts)
        self.done = 0

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Work on one part of the source."""
        self._show(description=name)
        yield
        self.done += 1
        self._show(completed=100 * self.done)

    @contextmanager
    def asking(self, percent: Percent) -> Iterator[None]:
        """Ask from a second thread while this one waits for the engine."""
        if self.bar is None:
            yield
            return
        over = threading.Event()

        def ask() -> None:
            while not over.wait(INTERVAL):
                now = percent()
                if now is not None and now >= 0:
                    self._show(completed=100 * self.done + min(now, 100.0))

        asker = threading.Thread(target=ask, daemon=True)
        asker.start()
        try:
            yield
        finally:
            over.set()
            asker.join()

    def _show(self, **state: Any) -> None:
        if self.bar is not None:
            self.bar.update(self.line, **state)


@contextmanager
def watching(parts: int, *, enabled: bool | None) -> Iterator[Watch]:
    """A watch over the work on `parts` parts: a bar on the standard error, or nothing."""
    if enabled is None:
        enabled = sys.stderr.isatty() and find_spec("rich") is not None
    if not enabled:
        yield Watch()
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError as error:
        fail("A progress bar needs rich: pip install 'calibrant[cli]'.", ImportError, cause=error)
    console = Console(stderr=True)
    with Progress(console=console, transient=console.is_terminal) as bar:
        yield Watch(bar, parts)


def spark_percent(session: Any) -> Percent:
    """Tasks done of tasks in the stages that Spark runs at present."""
    tracker = session.sparkContext.statusTracker()

    def percent() -> float | None:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        tasks = sum(stage.numTasks for stage in stages if stage)
        return 100 * sum(stage.numCompletedTasks for stage in stages if stage) / tasks if tasks else None

    return percent


Work = Callable[[NamedFrame], Any]
"""What is done with the columns."""
Merge = Callable[[Sequence[Any]], Any]
"""How what was made of several parts becomes one."""


@dataclass(frozen=True)
class FirstRow:
    """The first row of a file that breaks a rule: the file, the number of the row from 1, and the rule's place."""

    file: str
    row: int
    rule: int

    def __str__(self) -> str:
        return f"row {self.row:,} of {self.file!r}"


@dataclass(frozen=True)
class Shard(ABC):
    """A part of a source that one engine reads at once, and which of its rows."""

    source: Any
    where: nw.Expr | str | None

    @property
    def name(self) -> str:
        """What to call it in a progress bar: the type of a frame."""
        return type(self.source).__name__

    @abstractmethod
    def apply(self, work: Work, wanted: Mapping[str, str], watch: Watch, merge: Merge = merged) -> Any:
        """Do the work where the rows are; `wanted` are the names of columns and their roles."""

    def first_invalid(self, plan: Plan) -> FirstRow | None:
        """Where the first row is that breaks a rule; None where the source is not a file that a reader can look at."""
        return None


class FileShard(Shard):
    """Files, in an embedded DuckDB."""

    @property
    def name(self) -> str:
        """The first file, and how many more there are."""
        return str(self.source)

    def apply(self, work: Work, wanted: Mapping[str, str], watch: Watch, merge: Merge = merged) -> Any:
        """Read the files on a connection of their own."""

        def use(table: FileTable) -> Any:
            columns = self._columns(table.with_texts(wanted), wanted, table)
            try:
                with watch.asking(table.opened.query_progress):
                    return work(replace(columns, counted=self.source.counted and self.where is None))
            except NotNumbers as error:
                for name, relation in table.numbered(wanted):
                    found = first_text(self._columns(relation, wanted, table), error.name)
                    if found is not None:
                        value, row, count = found
                        said = error.at(value, f"row {row:,} of {name!r}", count)
                        fail(f"{said}{text_remedy(value, error.name)}")
                raise

        try:
            return read(self.source, use)
        except InvalidPredictions as error:
            if "Cannot read" in str(error) or self.source.each[0][1] in str(error):
                raise
            fail(f"{str(error).rstrip('.')} (read from {self.name}).")

    def first_invalid(self, plan: Plan) -> FirstRow | None:
        """The first invalid row, file by file, counted before any row is left out by `where`."""

        def use(table: FileTable) -> FirstRow | None:
            for name, relation in table.numbered(plan.wanted):
                rows = plan.rows(self._columns(relation, plan.wanted, table))
                found = first_invalid(rows.columns, rows.checks)
                if found is not None:
                    return FirstRow(name, *found)
            return None

        return read(self.source, use)

    def _columns(self, relation: Any, wanted: Mapping[str, str], table: FileTable) -> NamedFrame:
        if isinstance(self.where, str):
            relation = filtered(relation, self.where, table.refused)
        return bound(_filtered(nw.from_native(relation), self.where), wanted, table.refused)


def first_invalid(columns: NamedFrame, checks: tuple[Check, ...]) -> tuple[int, int] | None:
    """Number of the first row by `FILE_ROW` that breaks a rule, and the place of that rule."""
    broken = columns.frame.select(nw.col(FILE_ROW), first_broken(checks).alias("rule"))
    found = broken.filter(nw.col("rule") >= 0).sort(FILE_ROW).head(1).collect()
    return (int(found[FILE_ROW][0]), int(found["rule"][0])) if len(found) else None


class FrameShard(Shard):
    """A frame of any engine that Narwhals knows."""

    def apply(self, work: Work, wanted: Mapping[str, str], watch: Watch, merge: Merge = merged) -> Any:
        """Run on the frame's own engine."""
        frame = nw.from_native(self.source)
        columns = bound(_filtered(frame.lazy(), self.where), wanted)
        columns = replace(columns, counted=isinstance(frame, nw.DataFrame))
        if not frame.implementation.is_pyspark():
            return work(columns)
        with watch.asking(spark_percent(self.source.sparkSession)):
            return work(columns)


def shards(source: Any, where: nw.Expr | str | None, options: paths.ReadOptions = paths.DEFAULT) -> list[Shard]:
    """The parts of a source; all files are one part, so that DuckDB reads them together."""
    given = list(source) if isinstance(source, (list, tuple)) else [source]
    if not given:
        fail("source is an empty list.", ValueError)
    named, frames = [one for one in given if paths.is_path(one)], [one for one in given if not paths.is_path(one)]
    found: list[Shard] = [FileShard(paths.files(named, options), where)] if named else []
    if frames and isinstance(where, str):
        remedy = "for frames give a Narwhals expression, or filter them yourself"
        fail(f"SQL text as where= is for files; {remedy}.", TypeError)
    for frame in frames:
        found.append(DaskShard(frame, where) if is_dask(frame) else FrameShard(_known(frame), where))
    return found


def _known(frame: Any) -> Any:
    try:
        nw.from_native(frame)
    except TypeError as error:
        known = "a path, a pattern, or a frame of pandas, Polars, pyarrow, DuckDB, Spark, Ibis or Dask"
        fail(f"source must be {known}, got {type(frame).__name__}.", TypeError, cause=error)
    return frame


def _filtered(frame: Frame, where: nw.Expr | str | None) -> Frame:
    return frame if where is None or isinstance(where, str) else frame.filter(where)


#: Tables merged by one task; the tree is this wide.
#: Speed: a wider tree has fewer tasks but merges less at once; no result depends on it.
WIDTH = 16


def is_dask(frame: Any) -> bool:
    """Whether this is a Dask data frame, asked without importing Dask."""
    return any(base.__module__.startswith(("dask.dataframe", "dask_expr")) for base in type(frame).__mro__)


class DaskShard(Shard):
    """A Dask data frame: a table per partition, merged in a tree."""

    @property
    def name(self) -> str:
        """The type of the frame and its partitions."""
        return f"Dask frame of {self.source.npartitions} partitions"

    def apply(self, work: Work, wanted: Mapping[str, str], watch: Watch, merge: Merge = merged) -> Any:
        """Do the work on the workers; only tables travel."""
        from dask.base import compute
        from dask.delayed import delayed

        tables = [delayed(_of_partition)(part, work, wanted, self.where) for part in self.source.to_delayed()]
        while len(tables) > 1:
            tables = [delayed(merge)(tables[start : start + WIDTH]) for start in range(0, len(tables), WIDTH)]
        (found,) = compute(tables[0])  # type: ignore[no-untyped-call]
        return found


def _of_partition(part: Any, work: Work, wanted: Mapping[str, str], where: nw.Expr | None) -> Any:
    return work(replace(bound(_filtered(nw.from_native(part).lazy(), where), wanted), counted=True))
