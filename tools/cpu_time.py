"""A pytest plugin: writes the processor time of each test to the JUnit file, and marks the tests recorded as slow.

Processor time, children included, does not depend on what else the machine is doing.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from tools.durations import PROPERTY, Durations

START = pytest.StashKey[float]()


def _spent() -> float:
    return sum(os.times()[:4])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests, so that `make fast` can leave them out."""
    durations = Durations.load()
    for item in items:
        if durations.is_slow(item.nodeid):
            item.add_marker(pytest.mark.slow)


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
