"""How far the calls that users make most walk through the package; each bar is lowered when the walk gets shorter."""

import pytest
from tools.walk import CALLS, loaded, walk_of

#: Modules that run, changes of room, and modules loaded by a first call. The aims were 20, 40 and 60 for `interval`,
#: and 60 and 700 for `report`.
BARS = {"interval": (20, 40, 45), "report": (60, 699, 122)}


@pytest.mark.no_cover
@pytest.mark.parametrize("call", BARS)
def test_calls_stay_within_few_modules_and_rooms(call):
    modules, changes, cold = BARS[call]
    walk = walk_of(CALLS[call])
    assert len(walk.modules) <= modules
    assert walk.changes_of_room <= changes
    assert len(loaded(CALLS[call])) <= cold
