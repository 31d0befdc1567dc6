"""Sections become blocks in their order, with anchors of their own."""

import re

import pytest

from calibrant.reporting.contents import Omitted
from calibrant.reporting.layout.blocks import blocks, omitted_block
from tests.reporting import hand_made


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["binary", "multiclass", "regression", "unlabeled", "hostile"])
def test_every_kind_of_report_has_blocks_with_figures_and_their_text(name):
    contents = getattr(hand_made, name)()
    found = blocks(contents)
    assert len({block.anchor for block in found}) == len(found)
    for block in found:
        html = block.html()
        assert html.count("<figure") == html.count("Figure as text")
        assert "<img" not in html
        assert " style=" not in html
        ids = re.findall(r' id="([^"]+)"', html)
        assert len(ids) == len(set(ids))


def test_two_columns_of_groups_have_two_anchors():
    contents = hand_made.binary(sections=(hand_made.groups(), hand_made.groups(column="device")))
    assert [block.anchor for block in blocks(contents)] == ["groups", "groups-2"]


def test_what_is_left_out_is_said_with_its_reason():
    contents = hand_made.binary(omitted=(Omitted("Recalibration", "needs 100 rows <"),))
    assert "needs 100 rows &lt;" in omitted_block(contents).body
    assert omitted_block(hand_made.binary()) is None
