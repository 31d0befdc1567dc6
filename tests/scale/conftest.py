"""The log that most tests of scale read."""

import pytest

from tests.scale.logs import make_log


@pytest.fixture(scope="session")
def log():
    return make_log()
