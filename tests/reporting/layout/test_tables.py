"""Tables of maps, score ranges and the decision threshold."""

from dataclasses import replace
from xml.etree import ElementTree

from calibrant.reporting.contents import Threshold
from calibrant.reporting.layout.tables import map_table, range_table, threshold_table
from tests.reporting import hand_made


def lines(table):
    tree = ElementTree.fromstring(table)
    return [["".join(cell.itertext()).replace("\u00a0", " ") for cell in line] for line in tree.iter("tr")]


def test_maps_say_what_remains_and_what_is_gained():
    found = lines(map_table(hand_made.recalibration()))
    assert found[0][3] == "Log loss lower by, %"
    assert found[1][0] == "Platt scaling"
    assert found[1][1].startswith("≤ 0.")
    assert found[1][3:] == ["1.7 (0.9 to 2.5)", "best"]
    assert found[5][3:] == ["0.0 (−0.8 to 0.8)", "may not help"]
    crps = replace(hand_made.recalibration(), loss="CRPS")
    assert lines(map_table(crps))[0][3] == "CRPS lower by, %"


def test_where_the_error_sits():
    found = lines(range_table(hand_made.reliability().ranges))
    assert [line[0] for line in found[1:]] == ["below 0.2 %", "0.2 to 1 %", "1 to 5 %", "5 to 20 %", "above 20 %"]
    assert found[-1][-1].strip() == "66 %"
    unknown = [replace(b, share=None) for b in hand_made.reliability().ranges]
    assert lines(range_table(unknown))[1][-1] == ""


def test_the_threshold():
    threshold = hand_made.reliability().threshold
    found = lines(threshold_table(threshold))
    assert found[1][0] == "Scored 8 to 12.5 %"
    assert found[2][0] == "Scored 10 % and above"
    assert len(lines(threshold_table(Threshold(0.1, None, threshold.above)))) == 2
