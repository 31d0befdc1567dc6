import json

import numpy as np
import pytest

from calibrant.data.saved_files import InvalidFile
from calibrant.monitor import Monitor


def made(groups=False, seed=0, days=30):
    rng = np.random.default_rng(seed)
    monitor = Monitor(tolerance=0.05, points=0.001, horizon=0)
    for day in range(days):
        p = rng.beta(1, 4, 80)
        group = rng.choice(["a", "b<script>"], 80) if groups else None
        monitor.update(rng.random(80) < p, p, time=f"2026-01-{day + 1:02d}", group=group, batch=day)
    return monitor


@pytest.mark.parametrize("groups", [False, True])
def test_a_saved_monitor_goes_on_as_if_nothing_had_happened(tmp_path, groups):
    whole, saved = made(groups), made(groups)
    saved.save(tmp_path / "state.json")
    loaded = Monitor.load(tmp_path / "state.json")
    assert loaded.status().evidence == pytest.approx(whole.status().evidence, abs=1e-9)
    options = {"time": "2026-01-31", "batch": "last", "group": ["a", "b<script>", "a"] if groups else None}
    after = [one.update([1, 0, 1], [0.2, 0.3, 0.9], **options) for one in (whole, loaded)]
    assert after[0].evidence == pytest.approx(after[1].evidence, abs=1e-9)
    assert after[0].sentence == after[1].sentence
    assert "nothing was added" in str(loaded.update([1, 0, 1], [0.2, 0.3, 0.9], **options))
    np.testing.assert_allclose(loaded.history, whole.history, atol=1e-3)


def test_the_state_is_small(tmp_path):
    monitor = made(days=31)
    monitor.save(tmp_path / "state.json")
    assert (tmp_path / "state.json").stat().st_size < 30_000


def test_a_failed_save_leaves_the_old_state(tmp_path, monkeypatch):
    path = tmp_path / "state.json"
    monitor = made(days=3)
    monitor.save(path)
    before = path.read_bytes()
    monitor.columns = {"truth": object()}  # cannot be written
    with pytest.raises(TypeError):
        monitor.save(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["state.json"]


DAMAGE = {
    "another format": lambda s: s.update(format="calibrant-map"),
    "a newer version": lambda s: s.update(version=9),
    "a missing field": lambda s: s.pop("series"),
    "a count that is none": lambda s: s.update(rows=-1),
    "an unknown kind": lambda s: s.update(kind="pictures"),
    "a reference of another size": lambda s: s.update(reference=[1, 2]),
    "a period after the last": lambda s: s["series"][""].update({"99": s["series"][""]["0"]}),
    "more outcomes than rows": lambda s: s["series"][""]["0"][2].__setitem__(0, 1e6),
    "a cell out of range": lambda s: s["series"][""]["0"][0].__setitem__(0, 500),
    "a group without a share": lambda s: s["series"].update(other={}),
    "a damaged mean": lambda s: s["series"][""]["0"].__setitem__(3, "!!"),
    "squares out of range": lambda s: s["series"][""]["0"].__setitem__(4, -1),
    "an alpha that is none": lambda s: s.update(alpha=2),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_what_is_damaged_is_refused(tmp_path, what):
    path = tmp_path / "state.json"
    made(days=3).save(path)
    content = json.loads(path.read_text())
    DAMAGE[what](content)
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidFile, match=r"state\.json"):
        Monitor.load(path)


def test_what_is_not_json_is_refused(tmp_path):
    path = tmp_path / "state.json"
    path.write_text("{")
    with pytest.raises(InvalidFile, match="not the state of a monitor"):
        Monitor.load(path)
