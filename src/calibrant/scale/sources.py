"""The kinds of source: files, frames and Dask frames, each of which can have work done on its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals.stable.v2 as nw

from calibrant.data.validation import InvalidPredictions
from calibrant.scale import paths
from calibrant.scale.columns import Frame
from calibrant.scale.group_by import Tables, merged
from calibrant.scale.progress import Watch, spark_percent

Work = Callable[..., Tables]
"""What is done with a frame: ``work(frame, counted=...)``."""


class Shard(Protocol):
    """A part of a source that one engine reads at once."""

    @property
    def name(self) -> str:
        """What to call it in a progress bar."""

    def apply(self, work: Work, watch: Watch) -> Tables:
        """Do the work where the rows are."""


@dataclass(frozen=True)
class FileShard:
    """Files of one format, in an embedded DuckDB."""

    files: paths.Files
    where: nw.Expr | str | None

    @property
    def name(self) -> str:
        """The first file, and how many more there are."""
        more = len(self.files.names) - 1
        return self.files.names[0] + (f" and {more} more" if more else "")

    def apply(self, work: Work, watch: Watch) -> Tables:
        """Read the files on a connection of their own."""
        with paths.connection() as opened, paths.relation(opened, self.files) as relation:
            if isinstance(self.where, str):
                relation = relation.filter(self.where)
            frame = _filtered(nw.from_native(relation), self.where)
            with watch.asking(opened.query_progress):
                try:
                    return work(frame, counted=self.files.counted and self.where is None)
                except InvalidPredictions as error:
                    message = f"{str(error).rstrip('.')} (read from {self.name})."
                    raise InvalidPredictions(message) from None


@dataclass(frozen=True)
class FrameShard:
    """A frame of any engine that Narwhals knows."""

    frame: Any
    where: nw.Expr | str | None

    @property
    def name(self) -> str:
        """The type of the frame."""
        return type(self.frame).__name__

    def apply(self, work: Work, watch: Watch) -> Tables:
        """Run on the frame's own engine."""
        frame = nw.from_native(self.frame)
        lazy, counted = _filtered(frame.lazy(), self.where), isinstance(frame, nw.DataFrame)
        if not frame.implementation.is_pyspark():
            return work(lazy, counted=counted)
        with watch.asking(spark_percent(self.frame.sparkSession)):
            return work(lazy, counted=counted)


def shards(source: Any, where: nw.Expr | str | None) -> list[Shard]:
    """The parts of a source; files of one format are one part, so that DuckDB reads them together."""
    given = list(source) if isinstance(source, (list, tuple)) else [source]
    if not given:
        message = "source is an empty list."
        raise ValueError(message)
    frames = [one for one in given if not paths.is_path(one)]
    found: list[Shard] = [
        FileShard(files, where) for files in paths.files([one for one in given if paths.is_path(one)])
    ]
    if frames and isinstance(where, str):
        message = "SQL text as where= is for files; for frames give a Narwhals expression, or filter them yourself."
        raise TypeError(message)
    for frame in frames:
        found.append(DaskShard(frame, where) if is_dask(frame) else FrameShard(_known(frame), where))
    return found


def _known(frame: Any) -> Any:
    try:
        nw.from_native(frame)
    except TypeError as error:
        message = (
            f"source must be a path, a pattern, or a frame of pandas, Polars, pyarrow, DuckDB, Spark, Ibis or Dask, "
            f"got {type(frame).__name__}."
        )
        raise TypeError(message) from error
    return frame


def _filtered(frame: Frame, where: nw.Expr | str | None) -> Frame:
    return frame if where is None or isinstance(where, str) else frame.filter(where)


#: Tables merged by one task; the tree is this wide.
WIDTH = 16


def is_dask(frame: Any) -> bool:
    """Whether this is a Dask data frame, asked without importing Dask."""
    return any(base.__module__.startswith("dask.dataframe") for base in type(frame).__mro__) or (
        type(frame).__module__.startswith("dask_expr")
    )


@dataclass(frozen=True)
class DaskShard:
    """A Dask data frame: a table per partition, merged in a tree."""

    frame: Any
    where: Any

    @property
    def name(self) -> str:
        """The type of the frame and its partitions."""
        return f"Dask frame of {self.frame.npartitions} partitions"

    def apply(self, work: Any, watch: Watch) -> Tables:
        """Do the work on the workers; only tables travel."""
        from dask.base import compute
        from dask.delayed import delayed

        tables = [delayed(_of_partition)(part, work, self.where) for part in self.frame.to_delayed()]
        while len(tables) > 1:
            tables = [delayed(merged)(tables[start : start + WIDTH]) for start in range(0, len(tables), WIDTH)]
        (found,) = compute(tables[0])  # type: ignore[no-untyped-call]
        return found


def _of_partition(part: Any, work: Any, where: nw.Expr | None) -> Tables:
    frame = nw.from_native(part).lazy()
    return work(frame if where is None else frame.filter(where), counted=True)
