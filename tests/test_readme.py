"""The README's examples run and print what it says."""

import doctest
from pathlib import Path

import pytest

PAGES = [Path(__file__).parents[1] / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_on_the_page_run(page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    results = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert results.attempted > 0
    assert results.failed == 0
