"""The picture of the README shows the page that the README's command writes."""

import pytest
from tools.readme import README, SHOWN
from tools.site_in_browser import DESK, chromium

from tools import picture

#: A page with what the picture is drawn from, and the smallest PNG there is.
PAGE = (
    '<body><main><p>Not <b>calibrated</b></p><section id="findings">x</section><section id="diagram">y</section></main>'
)
DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def stored():
    return picture.PICTURE.read_bytes()


@pytest.mark.no_cover
def test_the_picture_carries_the_words_of_the_page_that_the_command_writes(stored):
    assert picture.carried(stored) == picture.words(picture.page())


def test_the_picture_and_the_console_block_say_the_same(stored):
    said = SHOWN.search(README.read_text(encoding="utf8"))[2]
    for sentence in said.split(". Calibration changed"):
        assert sentence.rstrip(".") in picture.carried(stored)


def test_the_picture_is_as_wide_as_a_desk_and_small_enough_for_a_readme(stored):
    width, height = picture.size(stored)
    assert width == DESK
    assert 1000 < height < 3000
    assert len(stored) < 500_000


def test_words_go_into_a_picture_and_come_out_again():
    assert picture.carried(DOT) is None
    assert picture.carried(picture.with_words(DOT, "p ≤ 0.001")) == "p ≤ 0.001"
    assert picture.size(picture.with_words(DOT, "x")) == (1, 1)


def test_words_below_the_findings_are_left_out():
    assert picture.words(PAGE) == "Not calibrated"


def test_a_picture_of_another_page_is_told(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(picture, "PICTURE", tmp_path / "report.png")
    monkeypatch.setattr(picture, "page", lambda: PAGE)
    monkeypatch.setattr("sys.argv", ["picture"])
    for words, code, said in (("Not calibrated", 0, "agrees"), ("Calibrated", 1, "make readme")):
        picture.PICTURE.write_bytes(picture.with_words(DOT, words))
        assert picture.main() == code
        assert said in capsys.readouterr().out


@pytest.mark.browser
@pytest.mark.skipif(chromium() is None, reason="no Chromium")
def test_the_script_draws_a_page_down_to_the_end_of_its_diagram():
    pytest.importorskip("playwright")
    drawn = picture.draw(PAGE.replace(">y<", ' style="height:700px">y<'))
    width, height = picture.size(drawn)
    assert width == DESK
    assert 700 < height < 900
    assert picture.carried(drawn) == "Not calibrated"
