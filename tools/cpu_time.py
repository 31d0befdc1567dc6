"""A pytest plugin: the processor time of each test goes to the JUnit file, and the longest files of tests come first.

Tests recorded as slow are marked, and run without coverage, which would make them slower by a third. Other tests that
repeat much and reach nothing of their own say `no_cover` themselves.
Processor time, children included, does not depend on what else the machine is doing.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator

import pytest

from tools.durations import PROPERTY, Durations

START = pytest.StashKey[float]()
#: Tests of many parts together, whose lines are reached by the tests of each part: they too run without coverage.
TOGETHER = (
    "tests/fuzz/",
    "tests/inference/test_coverage.py",
    "tests/recalibrate/test_export.py",
    "tests/reporting/test_journeys.py",
    "tests/reporting/layout/test_page.py",
    "tests/reporting/test_worlds.py",
    "tests/reproduce/",
    "tests/test_docs.py",
    "tests/test_seeds.py",
)


def _spent() -> float:
    return sum(os.times()[:4])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow tests, so that `make fast` can leave them out; longest files first where processes share them."""
    durations = Durations.load()
    for item in items:
        slow = durations.is_slow(item.nodeid)
        if slow:
            item.add_marker(pytest.mark.slow)
        if slow or item.nodeid.startswith(TOGETHER):
            item.add_marker(pytest.mark.no_cover)
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items, durations)


def longest_first(items: list[pytest.Item], durations: Durations) -> list[pytest.Item]:
    """The tests in the order of what their files take, so that no process is left with a long one at the end.

    Browsers and clusters start slowly, in processes whose time is not recorded: their files come before all others.
    """
    files = [item.nodeid.partition("::")[0] for item in items]
    waiting = {file for file, item in zip(files, items, strict=True) if {"spark", "browser"} & set(item.keywords)}
    order = sorted(dict.fromkeys(files), key=lambda file: (file not in waiting, -durations.total(file)))
    place = {file: number for number, file in enumerate(order)}
    return [items[at] for at in sorted(range(len(items)), key=lambda at: place[files[at]])]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: the garbage collector need not look through it, neither now nor during the tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Libraries that count their objects find them gone at the end."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Start the clock before the fixtures."""
    item.stash[START] = _spent()
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Stop it before the fixtures are taken down; reports carry the result to the JUnit file."""
    if START in item.stash:
        item.user_properties.append((PROPERTY, round(_spent() - item.stash[START], 3)))
