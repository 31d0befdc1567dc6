"""Verdicts in worlds of known truth: task, state, severity, direction, flagged groups and recommendation are right.

Where something is wrong it is wrong by so much that chance cannot hide it: no error is allowed. Where nothing is wrong,
a report may accuse by chance, in 5 % of samples: its tests are adjusted for each other. Of all calibrated worlds and
seeds together at most the number named below may be accused.

The sentences of one seed are kept in `snapshots/verdicts.txt`; `python -m tests.reporting.test_worlds` writes them
anew.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from tests.reporting.worlds import WORLDS, World

SNAPSHOTS = Path(__file__).parent / "snapshots" / "verdicts.txt"
CALM = [world for world in WORLDS if world.by_chance]
WRONG = [world for world in WORLDS if not world.by_chance]
#: Of each calm world, several.
SEEDS = (0, 1)
#: Accusations allowed: each calm world may be accused with a probability of 5 %, so that more than these of 44 samples
#: would be seen once in two hundred sets of seeds.
ALLOWED = 6
pytestmark = pytest.mark.no_cover


@cache
def reported(world: World, seed: int):
    rng = np.random.default_rng([seed, sum(map(ord, world.name))])
    data, options = world.make(rng)
    return cal.report(data, **options)


def accused(found) -> bool:
    return found.verdict.state in ("not calibrated", "small")


def require_right(world, found):
    verdict = found.verdict
    assert found.contents.kind == world.kind
    assert verdict.state in world.states, verdict
    assert verdict.severity in world.severities, verdict
    assert verdict.direction in world.directions, verdict
    assert world.advice in verdict.what_to_do, verdict.what_to_do
    if world.flagged is not None:
        assert {row.name for section in found.groups for row in section.rows if row.flagged} == world.flagged
    if world.changed is not None:
        change = None if found.over_time is None else found.over_time.change
        assert (change is not None and change.significant) == world.changed


def require_consistent(found):
    """Sentence, findings, numbers and tests say the same."""
    verdict, codes = found.verdict, {finding.code for finding in found.findings}
    weights = 1 + len(found.groups) + (found.over_time is not None) + 0.6 * (found.contents.kind == "regression")
    rejected = bool(found.tests) and weights * found.tests[0].p_value < 0.05  # whatever the other tests say
    if rejected and verdict.state != "cannot be judged":
        assert accused(found)
        assert "CAL202" not in codes
    if verdict.state == "not significant":
        assert not {"CAL201", "CAL211", "CAL601", "CAL501"} & codes
    assert {finding.severity for finding in found.findings} <= {"problem", "caution", "note"}
    if verdict.severity == "problem":
        assert any(finding.severity == "problem" for finding in found.findings)
    if verdict.severity == "note":
        assert not any(finding.severity == "problem" for finding in found.findings)
    recalibration = found.recalibration
    if "lowers cross-validated" in verdict.what_to_do:
        assert recalibration.maps[0].gain.low > 0
    assert verdict.what_to_do
    texts = [verdict.sentence, verdict.second, verdict.how_sure, verdict.what_it_means, verdict.what_to_do]
    for text in texts + [finding.text for finding in found.findings]:
        assert not any(word in text for word in ("nan", "None", "inf ", "  ", " 0.0 points", "EqualMass", "MultiScale"))


def test_there_are_enough_worlds():
    assert len(WORLDS) >= 60
    assert len({world.name for world in WORLDS}) == len(WORLDS)
    assert {world.kind for world in WORLDS} == {"binary", "classes", "regression", "unlabeled"}


@pytest.mark.parametrize("world", WRONG, ids=lambda world: world.name)
def test_what_is_wrong_is_told(world):
    found = reported(world, 0)
    require_right(world, found)
    require_consistent(found)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("world", CALM, ids=lambda world: world.name)
def test_what_is_right_is_told(world, seed):
    found = reported(world, seed)
    require_consistent(found)
    if not accused(found):
        require_right(world, found)


def test_calibrated_worlds_are_accused_only_by_chance():
    assert sum(accused(reported(world, seed)) for world in CALM for seed in SEEDS) <= ALLOWED


def snapshot() -> str:
    lines = []
    for world in WORLDS:
        verdict = reported(world, 0).verdict
        lines += [f"{world.name} [{verdict.rule}, {verdict.state}, {verdict.severity}, {verdict.direction}]"]
        lines += [f"  {text}" for text in (str(verdict), verdict.what_it_means, verdict.what_to_do) if text]
    return "\n".join(lines) + "\n"


def test_sentences_are_as_they_were():
    """Numbers may differ in the last digit between machines; the words may not."""
    kept, now = (text.splitlines() for text in (SNAPSHOTS.read_text(encoding="utf8"), snapshot()))
    assert [_words(line) for line in now] == [_words(line) for line in kept]


def _words(line: str) -> str:
    return "".join(character for character in line if not character.isdigit() and character not in ".,−")


if __name__ == "__main__":
    SNAPSHOTS.parent.mkdir(exist_ok=True)
    SNAPSHOTS.write_text(snapshot(), encoding="utf8")
