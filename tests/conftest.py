"""What the tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tools import cpu_time

# A busy machine is no failure. CI looks at the same examples every time; elsewhere new ones are tried.
settings.register_profile("calibrant", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("calibrant")

ROOT = Path(__file__).parents[1]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(cpu_time)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Studies and random cases run code that the tests of the rooms trace, many times over."""
    for item in items:
        if item.path.is_relative_to(ROOT / "tests" / "reproduce") or item.path.is_relative_to(ROOT / "tests" / "fuzz"):
            item.add_marker(pytest.mark.no_cover)


def find_shared_data() -> Path | None:
    """The folder of real predictions that lies beside the project, or where CALIBRANT_SHARED_DATA says."""
    candidates = [os.environ.get("CALIBRANT_SHARED_DATA", ""), ROOT / "../shared/data", ROOT / "../../shared/data"]
    return next((Path(place).resolve() for place in candidates if str(place) and Path(place).is_dir()), None)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    place = find_shared_data()
    if place is None:
        pytest.skip("the real predictions are not here; set CALIBRANT_SHARED_DATA to their folder")
    return place


@pytest.fixture(params=["off", "on"])
def fast(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test without the compiled loops and with them."""
    if request.param == "on":
        pytest.importorskip("numba")
    monkeypatch.setenv("CALIBRANT_FAST", request.param)
    return request.param
