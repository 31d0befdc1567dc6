"""The log that most tests of scale read."""

import pytest
from scale_logs import make_log


@pytest.fixture(scope="session")
def log():
    return make_log()
