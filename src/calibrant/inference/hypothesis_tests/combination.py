"""Several statistics of data and of draws from the null hypothesis, combined into one exact p-value."""

from __future__ import annotations

import numpy as np

from calibrant.numerics.arrays import Floats


def rank_p_values(statistics: Floats) -> Floats:
    """For each line the share of lines, itself included, whose statistic is at least as large, column by column.

    Numbers that differ by rounding alone are taken for equal.

    >>> rank_p_values(np.array([[3.0], [1.0], [2.0], [2.0]]))[:, 0]
    array([0.25, 1.  , 0.75, 0.75])
    """
    ordered = np.sort(statistics, axis=0)
    slack = 1e-10 * (np.abs(statistics) + np.abs(ordered[len(ordered) // 2]))
    below = [np.searchsorted(*pair) for pair in zip(ordered.T, (statistics - slack).T, strict=True)]
    return (len(statistics) - np.stack(below, axis=1)) / len(statistics)


def cauchy_rank(single: Floats, weight: Floats) -> float:
    r"""The p-value of the first line by the rank of :math:`\sum_j \omega_j \cot(\pi p_j)` among the lines.

    It is exact whatever the dependence of the columns if the lines are exchangeable (Liu and Xie 2020 for the sum).

    >>> cauchy_rank(np.array([[0.25, 0.5], [1.0, 1.0], [0.75, 0.75], [0.5, 0.25]]), np.ones(2))
    0.5
    """
    inner = single * (len(single) / (len(single) + 1))  # else the largest rank, p = 1, outweighs all other columns
    combined = (1 / np.tan(np.pi * inner)) @ weight
    return float(np.mean(combined >= combined[0] - 1e-9 * abs(combined[0])))
