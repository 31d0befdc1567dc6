"""The check of the built site finds what a reader would stumble over."""

from tools import site


def _site(folder, **pages):
    for name, body in pages.items():
        (folder / f"{name}.html").write_text(f"<html><body>{body}</body></html>", encoding="utf8")
    return folder


def test_a_site_whose_links_all_lead_somewhere_has_no_fault(tmp_path, capsys):
    made = _site(tmp_path, a='<a href="b.html#here">b</a> <img src="b.html">', b='<p id="here"><a href="#here">up</a>')
    assert list(site.faults(made)) == []
    assert site.main(str(made)) == 0
    assert "every link leads somewhere" in capsys.readouterr().out


def test_each_kind_of_fault_is_named_with_its_page(tmp_path, capsys):
    made = _site(
        tmp_path,
        a='<a href="c.html">c</a> <a href="b.html#gone">b</a> <img src="none.png"> <a href="../up.html">up</a>',
        b='<script src="https://elsewhere.example/x.js"></script><link rel="stylesheet" href="//elsewhere.example/y">',
    )
    found = set(site.faults(made))
    assert found == {
        "a.html links to nothing: c.html",
        "a.html links to a missing place: b.html#gone",
        "a.html links to nothing: none.png",
        "a.html links outside the site: ../up.html",
        "b.html loads https://elsewhere.example/x.js",
        "b.html loads //elsewhere.example/y",
    }
    assert site.main(str(made)) == 1
    assert "none.png" in capsys.readouterr().out


def test_links_to_other_sites_are_left_alone(tmp_path):
    assert (
        list(site.faults(_site(tmp_path, a='<a href="https://elsewhere.example">x</a> <a href="mailto:x@y.z">m</a>')))
        == []
    )
