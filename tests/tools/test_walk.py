import numpy as np
from tools.walk import walked


def test_a_call_between_rooms_is_counted_and_one_within_a_room_is_not():
    import calibrant as cal

    data = cal.Binary([0, 1, 1, 0], [0.1, 0.6, 0.9, 0.3])
    walk = walked(lambda: cal.brier(data))
    assert "calibrant.estimators.proper_scores" in walk.modules
    assert all(there != here for there, here in walk.changes)
    assert walk.changes_of_room == sum(walk.changes.values()) > 0


def test_what_is_called_from_outside_the_package_is_no_change_of_room():
    from calibrant.numerics.arrays import clipped_log_odds

    assert walked(lambda: clipped_log_odds(np.array([0.3]))).changes_of_room == 0
