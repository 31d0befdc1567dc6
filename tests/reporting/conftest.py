"""One report that many tests read."""

import pytest

import calibrant as cal
from tests.reporting.samples import GROUPS, OVER


@pytest.fixture(scope="session")
def over():
    return cal.report(OVER, by=GROUPS, title="Over <b>confident</b>")
