"""Maps survive the disk to the last bit, and damaged, foreign or newer files are refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant import recalibrate as rc
from calibrant.data.saved_files import InvalidFile
from calibrant.recalibrate.persistence import decoded_array, decoded_bytes, encoded_array, encoded_bytes

MAPS = {
    "Identity": rc.Identity(),
    "Temperature": rc.Temperature(laplace=1.0),
    "Platt": rc.Platt(),
    "Quadratic": rc.Quadratic(),
    "Beta": rc.Beta(),
    "Spline": rc.Spline(knots=6),
    "Isotonic": rc.Isotonic(allow_certainty=True),
    "CentredIsotonic": rc.CentredIsotonic(),
    "Histogram": rc.Histogram(bins=cal.Edges([0, 0.2, 1])),
    "BayesianBinning": rc.BayesianBinning(),
    "VennAbers": rc.VennAbers(),
    "ScalingBinning": rc.ScalingBinning(scaling=rc.Beta(), bins=cal.EqualWidth(4)),
    "OneVsRest": rc.OneVsRest(rc.Isotonic()),
    "Auto": rc.Auto([rc.Platt(), rc.Isotonic()], combine="stack", cautious=False),
}
LABELS = {"whole": np.array([0, 1]), "truth": np.array([False, True]), "words": np.array(["no", "yes"])}


def rows(n=200):
    rng = np.random.default_rng(3)
    p = rng.random(n)
    return p, (rng.random(n) < p**2).astype(int)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", MAPS)
def test_every_map_comes_back_as_it_was(name, labels, tmp_path):
    p, y = rows()
    fitted = MAPS[name].fit(p, LABELS[labels][y])
    fitted.save(tmp_path / "map.json")
    loaded = rc.load(tmp_path / "map.json")
    assert type(loaded) is type(fitted)
    assert repr(loaded) == repr(fitted)
    np.testing.assert_array_equal(loaded.predict_proba(p), fitted.predict_proba(p))
    np.testing.assert_array_equal(loaded.predict(p), fitted.predict(p))
    assert loaded.classes_.dtype == fitted.classes_.dtype
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "map.json").read_bytes()


def saved(folder):
    path = folder / "map.json"
    rc.Isotonic().fit(*rows()).save(path)
    return path


def test_a_file_is_readable_json_with_version_and_checksum(tmp_path):
    document = json.loads(saved(tmp_path).read_text())
    assert document["format"] == "calibrant-map"
    assert document["version"] == 3
    assert document["calibrant"] == cal.__version__
    assert len(document["checksum"]) == 64
    assert document["map"]["__map__"] == "Isotonic"
    assert document["map"]["room"] == "recalibrate"
    assert [file.name for file in tmp_path.iterdir()] == ["map.json"]  # no temporary file is left


def changed(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    return path


def reseal(document):
    from calibrant.recalibrate import persistence

    document["checksum"] = persistence._checksum(document["map"])


def test_a_changed_number_is_noticed(tmp_path):
    path = changed(saved(tmp_path), lambda d: d["map"]["params"].update(laplace=0.5))
    with pytest.raises(InvalidFile, match="damaged: its contents do not match"):
        rc.load(path)


def test_half_a_file_is_noticed(tmp_path):
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InvalidFile, match="does not hold JSON"):
        rc.load(path)


def test_a_newer_file_asks_for_an_upgrade(tmp_path):
    path = changed(saved(tmp_path), lambda d: d.update(version=4, calibrant="9.0"))
    with pytest.raises(InvalidFile, match=r"layout version 4, written by calibrant 9\.0.*Upgrade"):
        rc.load(path)


@pytest.mark.parametrize("content", ["[1, 2]", '{"format": "something else"}', "3"])
def test_other_json_is_no_map(tmp_path, content):
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(InvalidFile, match="is not a map written by save"):
        rc.load(path)


@pytest.mark.parametrize("name", ["os.system", "Popen", "load", "Recalibratorx", "__builtins__"])
def test_only_known_classes_are_loaded(tmp_path, name):
    def change(document):
        document["map"]["__map__"] = name
        reseal(document)

    with pytest.raises(InvalidFile, match="has no map called"):
        rc.load(changed(saved(tmp_path), change))


def test_only_known_options_and_plain_arrays_are_loaded(tmp_path):
    def option(document):
        document["map"]["params"]["allow_certainty"] = {"__option__": "Path", "fields": {}}
        reseal(document)

    with pytest.raises(InvalidFile, match="has no option called"):
        rc.load(changed(saved(tmp_path), option))

    def objects(document):
        document["map"]["state"]["knots_"]["__array__"] = "|O"
        reseal(document)

    with pytest.raises(InvalidFile, match="holds no arrays of type object"):
        rc.load(changed(saved(tmp_path), objects))

    def text(document):
        document["map"]["state"]["knots_"]["base64"] = "?"
        reseal(document)

    with pytest.raises(InvalidFile, match="not valid base64"):
        rc.load(changed(saved(tmp_path), text))


def test_an_unfitted_map_and_a_foreign_classifier_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        rc.Platt().save(tmp_path / "map.json")
    foreign = rc.FromClassifier(LogisticRegression()).fit(*rows())
    with pytest.raises(TypeError, match="LogisticRegression cannot be saved as JSON"):
        foreign.save(tmp_path / "map.json")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = saved(tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        rc.Platt().fit(*rows()).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["map.json"]


@pytest.mark.parametrize("version", [0, -5, True, 99, "3", None])
def test_only_known_layout_versions_are_read(tmp_path, version):
    with pytest.raises(InvalidFile, match="layout version"):
        rc.load(changed(saved(tmp_path), lambda d: d.update(version=version)))


def test_a_map_that_kept_its_trees_in_other_files_asks_for_a_new_fit(tmp_path):
    def old(document):
        from calibrant.recalibrate import persistence

        document.update(version=2, files={"map.0.cbm": "0"})
        document["checksum"] = persistence._checksum([document["map"], document["files"]])

    with pytest.raises(InvalidFile, match="fit and save it again"):
        rc.load(changed(saved(tmp_path), old))


def tampered(folder, fitted, change):
    """A map whose contents were changed by hand, with a checksum that fits."""
    path = folder / "map.json"
    fitted.save(path)

    def edit(document):
        change(document["map"])
        reseal(document)

    return changed(path, edit)


def numbers(*values):
    return encoded_array(np.array(values, dtype=float))


TAMPERED = {
    "NaN coefficients": (rc.Platt(), lambda m: m["state"].update(coefficients_=numbers(np.nan, 0)), "not finite"),
    "infinite slope": (rc.Platt(), lambda m: m["state"].update(coefficients_=numbers(np.inf, 0)), "not finite"),
    "too few coefficients": (rc.Platt(), lambda m: m["state"].update(coefficients_=numbers()), "not a valid map"),
    "text for numbers": (rc.Platt(), lambda m: m["state"].update(coefficients_="steep"), "not a valid map"),
    "no coefficients": (rc.Platt(), lambda m: m["state"].pop("coefficients_"), "not a valid map"),
    "no state": (rc.Platt(), lambda m: m.pop("state"), "lacks 'state'"),
    "state of another kind": (rc.Platt(), lambda m: m.update(state=[1]), "not a valid map"),
    "a method": (rc.Platt(), lambda m: m["state"].update(predict_proba=3), "not the name of a fitted attribute"),
    "an unknown parameter": (rc.Platt(), lambda m: m["params"].update(slope=3), "not a valid map"),
    "one class": (rc.Platt(), lambda m: m["state"].update(classes_=numbers(1)), "two or more different labels"),
    "the same class twice": (rc.Platt(), lambda m: m["state"].update(classes_=numbers(1, 1)), "different labels"),
    "five columns": (rc.Platt(), lambda m: m["state"].update(n_features_in_=5), "number of columns"),
    "true columns": (rc.Platt(), lambda m: m["state"].update(n_features_in_=True), "number of columns"),
    "negative rows": (rc.Platt(), lambda m: m["state"].update(weight_=-3.0), "weight_ must be positive"),
    "a negative mixture": (rc.Platt(), lambda m: m["params"].update(laplace=-1.0), "laplace must be"),
    "scores of no kind": (rc.Platt(), lambda m: m["params"].update(input="words"), "input must be"),
    "rates above one": (
        rc.Isotonic(),
        lambda m: m["state"].update(knots_=numbers(0, 1), values_=numbers(0, 3)),
        "not probabilities",
    ),
    "a negative temperature": (rc.Temperature(), lambda m: m["state"].update(temperature_=-1.0), "must be positive"),
    "no map at all": (rc.Platt(), lambda m: m.clear() or m.update(a=1), "holds a dict, not a map"),
    "an abstract map": (rc.Platt(), lambda m: m.update(__map__="Recalibrator"), "not a valid map"),
    "a name of no kind": (rc.Platt(), lambda m: m.update(__map__=["Platt"]), "not a valid map"),
    "a spread of NaN": (
        rc.StdScaling(),
        lambda m: m["state"]["outputs_"][0].update(scale={"__float__": "nan"}),
        r"outputs_\[0\]\['scale'\] holds numbers that are not finite",
    ),
    "no outputs": (rc.StdScaling(), lambda m: m["state"].update(outputs_=[]), "outputs_ must describe 1 outputs"),
    "an odd number of columns": (rc.StdScaling(), lambda m: m["state"].update(n_features_in_=3), "twice the number"),
    "a negative spread": (rc.StdScaling(), lambda m: m["state"]["outputs_"][0].update(scale=-2.0), "not a valid map"),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_map_that_no_fit_can_give_is_refused(case, tmp_path):
    template, change, words = TAMPERED[case]
    p, y = rows()
    fitted = (
        template.fit(np.stack([p, p + 0.1], axis=1), y) if isinstance(template, rc.StdScaling) else template.fit(p, y)
    )
    with pytest.raises(InvalidFile, match=words):
        rc.load(tampered(tmp_path, fitted, change))


def test_maps_within_maps_are_checked_too(tmp_path):
    outer = rc.OneVsRest(rc.Platt()).fit(np.random.default_rng(0).dirichlet(np.ones(3), 60), np.arange(60) % 3)

    def change(m):
        m["state"]["maps_"][1]["state"].update(coefficients_=numbers(np.nan, 0))

    with pytest.raises(InvalidFile, match="coefficients_ holds numbers that are not finite"):
        rc.load(tampered(tmp_path, outer, change))


def test_deep_nesting_is_refused_like_everything_else(tmp_path):
    path = tmp_path / "map.json"
    for depth in (100, 100_000):
        path.write_text('{"format": "calibrant-map", "map": ' + "[" * depth + "]" * depth + "}")
        with pytest.raises(InvalidFile):
            rc.load(path)


def test_nothing_a_file_names_is_imported(tmp_path):
    import sys

    (tmp_path / "evil_module.py").write_text("raise SystemExit('executed')")
    sys.path.insert(0, str(tmp_path))
    try:
        for change in (
            lambda m: m.update(__map__="evil_module.Map"),
            lambda m: m.update(room="evil_module"),
            lambda m: m["params"].update(input={"__map__": "evil_module", "room": "evil_module"}),
        ):
            with pytest.raises(InvalidFile):
                rc.load(tampered(tmp_path, rc.Platt().fit(*rows()), change))
    finally:
        sys.path.remove(str(tmp_path))
    assert "evil_module" not in sys.modules


def test_a_map_that_predicts_nan_says_so():
    fitted = rc.Platt().fit(*rows())
    fitted.coefficients_ = np.array([np.nan, 0.0])
    with pytest.raises(cal.InvalidPredictions, match=r"output of Platt must be finite, but 2 of 2 rows"):
        fitted.predict_proba([0.2, 0.7])


VERSION_1 = json.loads((Path(__file__).parents[1] / "reference" / "maps_version_1.json").read_text())


@pytest.mark.parametrize("name", VERSION_1["maps"])
def test_files_of_layout_version_1_are_read(name, tmp_path):
    case, path = VERSION_1["maps"][name], tmp_path / "map.json"
    path.write_text(json.dumps(case["document"]))
    loaded = rc.load(path)
    if name == "PerGroup":
        assert loaded.min_rows == 20
        output = loaded.transform(cal.Gaussian([0.0] * 4, [0.0] * 4, [1.0] * 4, group=["a", "b", "c", "d"])).std
    else:
        inputs = VERSION_1["inputs"]["vectors" if name == "OneVsRest" else "probabilities"]
        output = loaded.predict_proba(inputs)
    np.testing.assert_allclose(output, case["output"], rtol=1e-12)
    loaded.save(path)
    assert json.loads(path.read_text())["version"] == 3
    assert repr(rc.load(path)) == repr(loaded)


def test_a_damaged_file_of_layout_version_1_is_noticed(tmp_path):
    document = VERSION_1["maps"]["Platt"]["document"]
    path = tmp_path / "map.json"
    path.write_text(json.dumps({**document, "beside": {"a.bin": "0"}}))
    with pytest.raises(InvalidFile, match="damaged: its contents do not match"):
        rc.load(path)


def test_the_file_says_which_package_a_map_belongs_to(tmp_path):
    path = tmp_path / "map.json"
    p, y = rows()
    cal.pu.PUPlatt().fit(cal.PositiveUnlabeled(p[y == 1], p, prior=0.3)).save(path)
    assert json.loads(path.read_text())["map"]["room"] == "pu"
    assert isinstance(rc.load(path), cal.pu.PUPlatt)

    def elsewhere(document, room):
        document["map"]["room"] = room
        reseal(document)

    for room in ("recalibrate", "simulate", "os"):
        with pytest.raises(InvalidFile, match="has no map called 'PUPlatt'"):
            rc.load(changed(path, lambda document, room=room: elsewhere(document, room)))


def test_a_registered_map_does_not_hide_one_of_the_package(tmp_path, monkeypatch):
    from calibrant.recalibrate import persistence

    monkeypatch.setattr(persistence, "_CLASSES", {})
    own = persistence.register(type("Isotonic", (rc.Identity,), {"__module__": "mine"}))
    assert type(rc.load(saved(tmp_path))) is rc.Isotonic
    path = tmp_path / "own.json"
    own().fit(*rows()).save(path)
    assert json.loads(path.read_text())["map"]["room"] is None
    assert type(rc.load(path)) is own


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f8", "i1", "i8", ">i4", "u2", "bool"])
def test_arrays_come_back_to_the_last_bit(dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    back = decoded_array(json.loads(json.dumps(encoded_array(array))))
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype.newbyteorder("=")
    back[0] = 1  # it is an array of its own


def test_other_types_and_other_text_are_refused():
    with pytest.raises(ValueError, match="no arrays of type"):
        decoded_array({"__array__": "|O", "shape": [1], "base64": ""})
    with pytest.raises(ValueError, match="no arrays of type"):
        decoded_array({"__array__": "f8,f8", "shape": [1], "base64": ""})
    with pytest.raises(ValueError, match="not valid base64"):
        decoded_bytes("?")
    with pytest.raises(ValueError, match="reshape"):
        decoded_array({"__array__": "|i1", "shape": [10**9], "base64": "AQI="})
    assert decoded_bytes(encoded_bytes(b"trees")) == b"trees"
