"""Dask, one partition at a time: its own group-by would gather every cell on every worker first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw

from calibrant.scale.group_by import Tables, merged
from calibrant.scale.progress import Watch

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
