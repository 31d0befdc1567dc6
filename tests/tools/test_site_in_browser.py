"""A browser finds what a reader would stumble over, and a search that finds nothing."""

import pytest

from tools import site_in_browser

PAGE = '<!doctype html><html><head><link rel="icon" href="data:,"></head><body>{}</body></html>'
#: The search of a site, in small: the form asks for its own page, which lists what it was asked for.
SEARCH = """<form><input name="q"></form><div id="search-results"></div><script>
const asked = new URLSearchParams(location.search).get("q");
if (asked) document.getElementById("search-results").innerHTML =
  `<a href="reference/calibrant.${asked.includes("benefit") ? "net_benefit" : "recalibrate.Temperature"}.html">x</a>`;
</script>"""
BROWSER = pytest.mark.skipif(site_in_browser.chromium() is None, reason="needs Chromium")


def _site(folder, **pages):
    for name, body in {"search": SEARCH, **pages}.items():
        (folder / f"{name}.html").write_text(PAGE.format(body), encoding="utf8")
    return folder


@pytest.mark.browser
@BROWSER
def test_a_good_site_passes_and_a_bad_page_is_named(tmp_path, capsys, monkeypatch):
    pytest.importorskip("playwright")
    (tmp_path / "good").mkdir()
    good = _site(tmp_path / "good", index="<p>Read me.")
    assert site_in_browser.main(str(good), str(tmp_path / "shots")) == 0
    assert "every page can be read" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "shots").iterdir()} == {"index-390.png", "index-1280.png"}
    (tmp_path / "bad").mkdir()
    bad = _site(
        tmp_path / "bad",
        index='<div style="width: 700px">wide</div><img src="gone.png"><script>nothing.here()</script>',
        search="<form><input name=q></form>",
    )
    monkeypatch.setattr(site_in_browser, "PATIENCE", 300)
    found = list(site_in_browser.faults(bad, tmp_path / "shots"))
    assert "index at 390 px: scrolls sideways" in found
    assert not [fault for fault in found if "1280" in fault and "sideways" in fault]
    assert any("no picture" in fault and "gone.png" in fault for fault in found)
    assert any("fails: nothing is not defined" in fault for fault in found)
    assert sum("does not find calibrant.net_benefit" in fault for fault in found) == 2


def test_without_a_browser_it_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr(site_in_browser, "chromium", lambda: None)
    assert site_in_browser.main("site", "shots") == 1
    assert "make chromium" in capsys.readouterr().out


def test_what_is_asked_elsewhere_is_said():
    said = []
    site_in_browser._asked("https://elsewhere.example/x.js", "http://127.0.0.1:1", said)
    site_in_browser._asked("data:,", "http://127.0.0.1:1", said)
    assert said == ["asks elsewhere: https://elsewhere.example/x.js"]
