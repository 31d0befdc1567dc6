"""Run every fuzzer for as long as one likes: ``python -m tests.fuzz --minutes 10``.

A failing case is printed with its fuzzer and seed; ``--only "map files" --seed 17 --cases 1`` runs it again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings

import numpy as np

from tests.fuzz.fuzzers import FUZZERS


def run_case(name, seed):
    """One case; the exception where it fails, else None."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            FUZZERS[name](np.random.default_rng([seed, *name.encode()]), folder)
        except Exception as error:
            return error
    return None


def main(arguments=None):
    """Print each failing case and the number of cases; the exit code says whether any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--cases", type=int, default=10**9, help="at most so many per fuzzer")
    parser.add_argument("--only", choices=list(FUZZERS), action="append")
    options = parser.parse_args(arguments)
    end, failed, count, seed = time.monotonic() + 60 * options.minutes, 0, 0, options.seed
    while time.monotonic() < end and seed < options.seed + options.cases:
        for name in options.only or FUZZERS:
            error, count = run_case(name, seed), count + 1
            if error is not None:
                failed += 1
                print(f"FAILED {name!r}, seed {seed}: {type(error).__name__}: {error}", flush=True)
        seed += 1
    print(
        f"{count} cases of {len(options.only or FUZZERS)} fuzzers, seeds {options.seed} to {seed - 1}: {failed} failed."
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
