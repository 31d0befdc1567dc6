"""Published and frozen numbers on real predictions."""

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

REFERENCE = json.loads((Path(__file__).parents[1] / "reference/binned.json").read_text(encoding="utf8"))["numbers"]

#: ECE of 15 equal-width bins in percent, as the models' authors and the bias paper print it.
PUBLISHED = {
    "toplabel_kangsepp_densenet40_c10": 5.500,
    "toplabel_kangsepp_resnet110_c10": 4.750,
    "toplabel_kangsepp_resnet110_c100": 18.480,
    "toplabel_kangsepp_densenet40_c100": 21.156,
    "toplabel_kangsepp_resnet50_birds": 2.353,
}


def task(folder, name):
    data = np.load(folder / "classification" / f"{name}.npz")
    if "prob" in data:
        return cal.Binary(data["labels"], data["prob"])
    outcome = data["correct"] if "correct" in data else data["pred"] == data["labels"]
    return cal.Binary(outcome, data["conf"])


@pytest.mark.parametrize("name", REFERENCE)
def test_every_frozen_number_comes_out_again(shared_data, name):
    data, expected = task(shared_data, name), REFERENCE[name]
    wide, mass = cal.EqualWidth(15), cal.EqualMass(15)
    measured = {
        "n": len(data),
        "equal width L1": cal.ece(data, bins=wide),
        "equal width L1 by scikit-learn": cal.ece(data, bins=wide),
        "equal width L2": cal.ece(data, bins=wide, norm=2),
        "equal mass L1": cal.ece(data, bins=mass),
        "equal mass L2": cal.ece(data, bins=mass, norm=2),
        "equal mass debiased square": cal.debiased_ece(data, bins=mass, norm=2).details["power"],
        "sweep L1": cal.sweep_ece(data),
        "sweep L2": cal.sweep_ece(data, norm=2),
        "sweep bins": cal.sweep_ece(data).details["bins"],
    }
    assert measured == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("name", "percent"), PUBLISHED.items())
def test_published_errors_come_out_again(shared_data, name, percent):
    assert 100 * cal.ece(task(shared_data, name), bins=cal.EqualWidth(15)) == pytest.approx(percent, abs=6e-4)


@pytest.mark.parametrize(("fold", "norm", "percent"), [("val", 2, 6.700), ("test", 1, 5.500)])
def test_densenet_logits_give_the_paper_s_errors(shared_data, fold, norm, percent):
    data = np.load(shared_data / "classification/kangsepp_densenet40_cifar10.npz")
    names = {key: key for key in data.files}
    logits = data[next(key for key in names if fold in key and "logit" in key)].astype(float)
    labels = data[next(key for key in names if fold in key and "label" in key)]
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    top = cal.Multiclass(labels, shifted / shifted.sum(axis=1, keepdims=True)).top_label()
    assert 100 * cal.ece(top, bins=cal.EqualWidth(15), norm=norm) == pytest.approx(percent, abs=6e-3)
