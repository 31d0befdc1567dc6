"""The exact mode: a second pass over the few cells that an edge cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.scale.group_by import Plan, Tables, merged, refined
from calibrant.scale.progress import Watch
from calibrant.scale.sources import Shard
from calibrant.table.binning import Binning
from calibrant.table.bintable import BinTable
from calibrant.table.discretization import cut_cells


def exactly(tables: Tables, parts: Sequence[Shard], plan: Plan, bins: Binning, watch: Watch) -> Tables:
    """The tables, with every cell that `bins` cut replaced by its distinct scores."""
    cut = {group: table.key[cut_cells(table, bins)[0]] for group, table in tables.items()}
    wanted = np.unique(np.concatenate(list(cut.values())))
    if len(wanted) == 0:
        return tables
    found = merged([part.apply(partial(refined, plan=plan, cells=wanted), watch) for part in parts])
    return {group: _replaced(table, cut[group], found.get(group)) for group, table in tables.items()}


def _replaced(table: BinTable, cut: NDArray[Any], scores: BinTable | None) -> BinTable:
    if scores is None or len(cut) == 0:
        return table
    cell = table.key[np.searchsorted(table.low, scores.low, side="right") - 1]
    ours = np.isin(cell, cut)
    kept, new = table.take(~np.isin(table.key, cut)), replace(scores, key=cell).take(ours)
    low = np.concatenate([kept.low, new.low])
    order = np.argsort(low, kind="stable")
    return replace(
        table,
        key=np.concatenate([kept.key, new.key])[order],
        low=low[order],
        high=np.concatenate([kept.high, new.high])[order],
        sums=np.concatenate([kept.sums, new.sums], axis=1)[:, order],
    )
