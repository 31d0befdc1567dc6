"""What runs here, in words, and starting the compiled loops."""

import calibrant as cal
from calibrant.numerics import switch


def test_versions_say_what_results_may_depend_on(capsys, monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "off")
    cal.show_versions()
    shown = dict(
        line.split(maxsplit=1) for line in capsys.readouterr().out.replace("compiled loops", "loops").splitlines()
    )
    assert shown["calibrant"] == cal.__version__
    assert {"python", "numpy", "scipy"} <= set(shown)
    assert shown["loops"] == "off (CALIBRANT_FAST)"


def test_a_missing_numba_is_said_with_the_remedy(capsys, monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "auto")
    monkeypatch.setattr(switch, "find_spec", lambda _: None)
    cal.show_versions()
    assert "not installed (pip install 'calibrant[fast]')" in capsys.readouterr().out


def test_warming_up_where_it_is_switched_off_does_nothing(monkeypatch):
    monkeypatch.setenv("CALIBRANT_FAST", "off")
    assert cal.warm_up() is False
