"""One part of the data, all rows or a group, with the results that several sections of a report read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from calibrant.data.predictions import Binary
from calibrant.estimators.proper_scores import brier, log_loss
from calibrant.estimators.recommended import calibration_error
from calibrant.estimators.validation_study import calibration_intercept, calibration_slope, observed_expected
from calibrant.estimators.variational_engine import Settings, Variational
from calibrant.inference.calibration_tests import calibration_test
from calibrant.inference.held_out_gains import FoldTables, fold_tables
from calibrant.inference.intervals import interval
from calibrant.numerics.arrays import GRID_ROWS
from calibrant.results.estimate import Estimate, Significance
from calibrant.table.binning import Distinct, HybridGrid
from calibrant.table.bintable import BinTable

#: The error the verdict speaks of: mean absolute gap between predicted and true probability.
headline_error = calibration_error


@dataclass(frozen=True, eq=False)
class Part:
    """Binary predictions or their fine table; every result is computed when first asked for, and only once.

    Attributes
    ----------
    data : Binary or fine BinTable
    seed : int
        Decides the folds.
    """

    data: Binary | BinTable
    seed: int = 0

    @cached_property
    def cells(self) -> BinTable:
        """The fine table that everything is computed from: one cell per distinct score, or a grid for many rows."""
        if isinstance(self.data, BinTable):
            return self.data.filled()
        return BinTable.of(self.data, Distinct() if len(self.data) <= GRID_ROWS else HybridGrid()).filled()

    @cached_property
    def headline(self) -> Estimate:
        """The calibration error in the L1 norm, with an interval for the true error."""
        return interval(headline_error, self._sample)

    @cached_property
    def test(self) -> Significance:
        """The default test of calibration, or the one that allows for clusters."""
        return calibration_test(self._sample)

    @cached_property
    def observed_expected(self) -> Estimate:
        """Observed over expected events, with its interval."""
        return interval(observed_expected, self._sample)

    @cached_property
    def slope(self) -> Estimate:
        """The calibration slope, with its interval."""
        return interval(calibration_slope, self._sample)

    @cached_property
    def intercept(self) -> Estimate:
        """Calibration in the large, with its interval."""
        return interval(calibration_intercept, self._sample)

    @cached_property
    def variational(self) -> Variational:
        """The cross-fitted maps behind the variational error, over- and underconfidence."""
        weighted = isinstance(self.data, Binary) and self.data.weight is not None
        return Variational.of(self.folds.held_out if weighted else self.cells, None, Settings(seed=self.seed))

    @cached_property
    def folds(self) -> FoldTables:
        """The rows divided into folds, for maps that are evaluated on rows they were not fitted on."""
        return fold_tables(self.data, self.cells, self.seed)

    @cached_property
    def brier(self) -> Estimate:
        """The Brier score."""
        return brier(self.cells)

    @cached_property
    def log_loss(self) -> Estimate:
        """The log loss; infinite where an outcome had a predicted probability of zero."""
        return log_loss(self.cells)

    @property
    def clustered(self) -> bool:
        """Whether rows depend on each other within groups."""
        return isinstance(self.data, Binary) and self.data.group is not None

    def with_interval(self, estimator: Callable[..., Estimate]) -> Estimate:
        """Another estimate of the true L1 error; its interval has the headline's target, so it is the headline's."""
        estimate, found = estimator(self.cells), self.headline.interval
        return estimate if found is None else estimate.with_interval(found)

    @property
    def _sample(self) -> Binary | BinTable:
        """The table, or the rows where they are clustered, which a table cannot tell."""
        return self.data if self.clustered else self.cells
