"""Scores as masses on equally spaced nodes of [0, 1], and their cosine transform, for smoothing that reflects there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.numerics.arrays import Floats
from calibrant.numerics.rows import Rows

#: Rows per chunk, each of which also touches every node: long enough to make that cheap. Speed: benchmarks/smooth.py;
#: no result depends on it but for the rounding of sums.
NODE_CHUNK = 1 << 18

#: Rows, or nodes, of the samples that are worked on at once: they stay in the cache. Speed: benchmarks/smooth.py; no
#: result depends on it.
SAMPLE_NUMBERS = 1 << 16


def linear_binning(parts: tuple[Rows, ...], size: int) -> tuple[Floats, Floats]:
    """Mass and observed mass at the nodes 0, 1/size, ..., 1 of rows whose key lies in [0, 1].

    Each row is shared by the two nodes around it, in proportion to nearness, so that the total and the mean key
    are preserved; a row exactly on a node goes to that node only. One pass, no sort.
    """
    sums = np.zeros((4, size + 1))
    for rows in parts:
        if rows.plain_binary:
            sums += _outcome_node_sums(rows.key, rows.observed, size)
        else:
            sums += _weighted_node_sums(rows, size)
    return _shared(sums)


def linear_binning_of_samples(score: Floats, outcome: NDArray[np.int8], size: int) -> tuple[Floats, Floats]:
    """Masses of rows and of positives at the nodes, for each row of these matrices.

    >>> every, positive = linear_binning_of_samples(np.array([[0.25, 1.0]]), np.array([[0, 1]], dtype=np.int8), 2)
    >>> every, positive
    (array([[0.5, 0.5, 1. ]]), array([[0., 0., 1.]]))
    """
    every, positive = np.empty((2, len(score), size + 1))
    step = max(SAMPLE_NUMBERS // max(score.shape[1], size + 1), 1)
    for start in range(0, len(score), step):
        some = slice(start, start + step)
        part, outcomes = score[some], outcome[some]
        first_node = np.repeat(np.arange(len(part)) * (size + 1), part.shape[1])
        sums = _outcome_node_sums(part.ravel(), outcomes.ravel(), size, len(part), first_node)
        # a score of 1 moves no mass, so none reaches the first node of the next sample
        for whole, masses in zip((every, positive), _shared(sums), strict=True):
            whole[some] = masses.reshape(len(part), size + 1)
    return every, positive


def _shared(sums: Floats) -> tuple[Floats, Floats]:
    """Masses at the nodes, from those of the rows between a node and the next and the parts that move to the next."""
    nodes, moved = sums[:2], sums[2:]
    nodes -= moved
    nodes[:, 1:] += moved[:, :-1]
    return nodes[0], nodes[1]


def _outcome_node_sums(
    score: NDArray[Any],
    outcome: NDArray[np.int8],
    size: int,
    samples: int = 1,
    first_node: NDArray[np.intp] | None = None,
) -> Floats:
    """Mass, observed mass, and both times the fraction beyond the node. Codes that include the outcome need two passes.

    With several samples, their nodes are concatenated, and `first_node` is the first node of each row's sample.
    """
    apart = np.zeros((2, 2 * samples * (size + 1)))
    for rows, node, beyond in _between_nodes(score, size):
        if first_node is not None:
            node += first_node[rows]
        node += node
        node += outcome[rows]
        apart[0] += np.bincount(node, minlength=apart.shape[1])
        apart[1] += np.bincount(node, beyond, apart.shape[1])
    negative, positive = apart[:, 0::2], apart[:, 1::2]
    every = negative + positive
    return np.stack([every[0], positive[0], every[1], positive[1]])


def _weighted_node_sums(rows: Rows, size: int) -> Floats:
    sums = np.zeros((4, size + 1))
    for part, node, beyond in _between_nodes(rows.key, size):
        chunk = rows.take(part)
        weight = np.ones(len(node)) if chunk.weight is None else chunk.weight
        mass = 0 * weight if chunk.role == "positives" else weight
        observed = 0 * weight if chunk.role == "population" else weight * chunk.observed
        for total, values in zip(sums, (mass, observed, mass * beyond, observed * beyond), strict=True):
            total += np.bincount(node, values, size + 1)
    return sums


def _between_nodes(key: NDArray[Any], size: int) -> Iterator[tuple[slice, NDArray[np.intp], Floats]]:
    """Chunks of rows, with the node at or below each row and its distance from that node in units of the spacing."""
    for start in range(0, len(key), NODE_CHUNK):
        rows = slice(start, start + NODE_CHUNK)
        beyond = key[rows] * np.float64(size)
        node = beyond.astype(np.intp)
        beyond -= node
        yield rows, node, beyond


def cosines(masses: Floats) -> Floats:
    r"""Coefficients of masses on nodes (the last axis) in the cosines of [0, 1].

    The masses are continued evenly to a period of 2; the ends are their own mirror images and so count twice, which
    gives an atom at 0 or 1 the same mass as one anywhere else. Multiplying by the transform of a kernel smooths
    with every reflection at both ends taken into account.
    """
    doubled = masses.copy()
    doubled[..., [0, -1]] *= 2
    return even_transform(doubled)


def even_transform(values: Floats) -> Floats:
    """The Fourier transform (DCT-I) of values at the nodes, continued evenly to a period of 2."""
    if values.ndim == 1:
        return np.fft.rfft(np.concatenate([values, values[-2:0:-1]])).real
    from scipy.fft import dct  # three times as fast on many rows, but slow to import

    return np.asarray(dct(values, type=1))


def at_nodes(coefficients: Floats) -> Floats:
    """Back from cosines: density times node spacing, to be summed with weights 1/2 at the ends and 1 between."""
    if coefficients.ndim == 1:
        size = len(coefficients) - 1
        return np.fft.irfft(coefficients, 2 * size)[: size + 1]
    from scipy.fft import idct

    return np.asarray(idct(coefficients, type=1))
