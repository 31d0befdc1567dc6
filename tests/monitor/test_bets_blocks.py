import json

import numpy as np
import pytest

from calibrant.data.saved_files import InvalidFile
from calibrant.monitor import Monitor
from calibrant.monitor.bets import CELLS, Bets, Blocks, start_weight, tree_sums

BETS = Bets.on_scores(np.ones(CELLS), 0.0, 0.0)


def one_day(rng, rows=50, shift=0.0):
    cell = rng.integers(40, 90, rows)
    found = np.zeros((CELLS, 3))
    p = (cell - 39) / 60
    np.add.at(found, cell, np.stack([np.ones(rows), p, rng.random(rows) < np.clip(p + shift, 0, 1)], axis=1))
    return found


def test_weights_of_starts_sum_to_at_most_one():
    assert sum(start_weight(j) for j in range(200_000)) <= 1


@pytest.mark.parametrize("last", [0, 1, 5, 100, 1000])
def test_weights_for_a_mean_time_between_alarms_sum_to_at_most_the_number_of_periods(last):
    assert sum(start_weight(j, arl=True) for j in range(last + 1)) <= last + 1 + 1e-9


def test_recent_starts_are_kept_one_by_one_and_early_ones_sparsely():
    blocks, rng = Blocks(BETS), np.random.default_rng(0)
    for day in range(600):
        blocks.advance(day)
        blocks.add(day, one_day(rng, 5), 1.0)
    starts = sorted(blocks.sums)
    assert set(range(585, 600)) <= set(starts)
    assert 45 <= len(starts) <= 70
    assert sum(one[:, 0].sum() for one in blocks.sums.values()) == 3000


def test_blocks_do_not_depend_on_the_order_of_days():
    rng = np.random.default_rng(1)
    days = [one_day(rng) for _ in range(100)]
    forward, late = Blocks(BETS), Blocks(BETS)
    for day, sums in enumerate(days):
        forward.advance(day)
        forward.add(day, sums, 1.0)
    late.advance(99)
    for day in rng.permutation(100).tolist():
        late.add(day, days[day], 1.0)
    assert sorted(forward.sums) == sorted(late.sums)
    assert forward.evidence().total == pytest.approx(late.evidence().total, abs=1e-9)


def test_a_change_gives_most_evidence_to_its_start():
    blocks, rng = Blocks(BETS), np.random.default_rng(2)
    for day in range(60):
        blocks.advance(day)
        blocks.add(day, one_day(rng, 200, shift=0.1 * (day >= 52)), 1.0)
    found = blocks.evidence()
    assert found.starts[int(found.own.argmax())] in range(50, 55)
    assert found.total > 5


def test_the_evidence_is_that_of_the_sums_even_if_it_was_asked_for_before():
    blocks, rng = Blocks(BETS), np.random.default_rng(3)
    blocks.add(0, one_day(rng), 1.0)
    before = blocks.evidence().total
    blocks.add(0, one_day(rng, 500, shift=0.3), 1.0)
    assert blocks.evidence().total > before + 5


def test_pinned_starts_stay():
    blocks, rng = Blocks(BETS), np.random.default_rng(4)
    for day in range(100):
        blocks.advance(day, pinned=[41])
        blocks.add(day, one_day(rng, 5), 1.0)
    assert 41 in blocks.sums
    assert 43 not in blocks.sums


def test_faded_sums_halve_with_each_half_life():
    blocks = Blocks(BETS)
    blocks.advance(10)
    blocks.add(0, np.ones((CELLS, 3)), 1.0)
    blocks.add(10, np.ones((CELLS, 3)), 1.0)
    np.testing.assert_allclose(blocks.faded(5.0), 1 + 0.5 ** ((10 - 4.5) / 5))


def test_an_interval_is_spread_over_the_nodes_it_covers():
    found = tree_sums(np.array([0.125]), np.array([0.375]), np.array([2.0]), np.zeros(1, int), 1, 4)[0]
    np.testing.assert_allclose(found[:, 0], [2, 2, 0, 0])
    np.testing.assert_allclose(found[:, 2], [0, 1, 0, 0])


def test_points_and_narrow_intervals_agree():
    rng = np.random.default_rng(5)
    u, period = rng.random(500), rng.integers(0, 3, 500)
    points = tree_sums(u, u, np.ones(500), period, 3, 16)
    narrow = tree_sums(u, u + 1e-13, np.ones(500), period, 3, 16)
    np.testing.assert_allclose(points, narrow, atol=1e-9)
    assert points[:, 0, 0].sum() == 500


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
