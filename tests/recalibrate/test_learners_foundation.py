"""Foundation models as maps: what they are told, what is said when weights are missing, and the files they leave.

The networks themselves are gigabytes away, so a stand-in with the interface of each library plays their part; where
`tabicl` is installed, its real code runs with a small network of random weights.
"""

import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from calibrant.data.saved_files import InvalidFile
from calibrant.recalibrate import TabICL, TabPFN, load, persistence

MAPS = [TabICL, TabPFN]


class StandIn(KNeighborsClassifier):
    """Remembers how it was made, and then is a nearest-neighbour classifier."""

    def __init__(self, **settings):
        super().__init__(n_neighbors=5)
        self.settings = settings
        self.n_rows = 0

    def fit(self, X, y):
        self.n_rows = len(y)
        return super().fit(X, y)


@pytest.fixture
def libraries(monkeypatch, tmp_path: Path) -> Path:
    """Stand-ins of tabicl, tabpfn and huggingface_hub whose caches are an empty folder."""
    cache = tmp_path / "cache"
    cache.mkdir()

    def cached(repository: str, file: str) -> str | None:
        assert repository == "jingang/TabICL"
        return str(cache / file) if (cache / file).exists() else None

    contents = {
        "tabicl": {"TabICLClassifier": StandIn},
        "tabpfn": {"TabPFNClassifier": StandIn},
        "tabpfn.model_loading": {"get_cache_dir": lambda: cache},
        "huggingface_hub": {"try_to_load_from_cache": cached},
        "huggingface_hub.constants": {"HF_HUB_CACHE": str(cache)},
    }
    for name, content in contents.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return cache


def world(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.uniform(size=n)
    return p, (rng.uniform(size=n) < p).astype(int)


def weights(folder: Path) -> str:
    file = folder / "network.ckpt"
    file.touch()
    return str(file)


@pytest.mark.parametrize("scaling", MAPS)
def test_missing_library_names_the_remedy(scaling, monkeypatch):
    monkeypatch.setitem(sys.modules, scaling._library, None)
    with pytest.raises(ImportError, match=r"pip install 'calibrant\[foundation\]'"):
        scaling().fit([0.2, 0.7], [0, 1])


@pytest.mark.parametrize(
    ("scaling", "file", "repository"),
    [
        (TabICL, "tabicl-classifier-v2-20260212.ckpt", "jingang/TabICL"),
        (TabPFN, "tabpfn-v2.5-classifier-v2.5_default.ckpt", "Prior-Labs/tabpfn_2_5"),
    ],
)
def test_missing_weights_say_what_to_download_and_where_to_put_it(libraries, scaling, file, repository):
    with pytest.raises(FileNotFoundError) as caught:
        scaling().fit(*world())
    for part in (file, repository, str(libraries), "model_path=", "download=True"):
        assert part in str(caught.value)
    with pytest.raises(FileNotFoundError, match=r"not at /nowhere/network\.ckpt"):
        scaling(model_path="/nowhere/network.ckpt").fit(*world())


@pytest.mark.parametrize("scaling", MAPS)
def test_weights_in_the_cache_of_the_library_are_found(libraries, scaling):
    (libraries / scaling().checkpoint).touch()
    network = scaling().fit(*world())._network
    assert Path(network.settings["model_path"]) == libraries / scaling().checkpoint


def test_libraries_are_called_as_they_document(libraries):
    path = weights(libraries)
    icl = TabICL(model_path=path, device="cpu", seed=3).fit(*world())._network.settings
    assert icl == {
        "model_path": Path(path),
        "checkpoint_version": "tabicl-classifier-v2-20260212.ckpt",
        "allow_auto_download": False,
        "device": "cpu",
        "random_state": 3,
    }
    pfn = TabPFN(model_path=path).fit(*world())._network.settings
    assert pfn == {"model_path": Path(path), "device": "auto", "ignore_pretraining_limits": True, "random_state": 0}
    allowed = TabICL(download=True).fit(*world())._network.settings
    assert allowed["model_path"] is None
    assert allowed["allow_auto_download"] is True


@pytest.mark.parametrize("scaling", MAPS)
def test_map_is_the_network_fed_with_probabilities(libraries, scaling):
    p, y = world()
    fitted = scaling(model_path=weights(libraries)).fit(p, y)
    rival = KNeighborsClassifier(5).fit(p[:, None], y)
    np.testing.assert_allclose(fitted.predict_proba(p), rival.predict_proba(p[:, None]), atol=1e-12)
    logits = scaling(model_path=weights(libraries), input="logits").fit(np.log(p / (1 - p)), y)
    np.testing.assert_allclose(logits.rows_[:, 0], p, atol=1e-12)


@pytest.mark.parametrize("scaling", MAPS)
def test_class_missing_in_the_fit_keeps_its_column(libraries, scaling):
    p = np.random.default_rng(0).dirichlet(np.ones(4), 46)
    q = scaling(model_path=weights(libraries)).fit(p, np.arange(46) % 3).predict_proba(p)
    np.testing.assert_allclose(q[:, 3], 1 / 50)
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=0, atol=1e-12)
    single = scaling(model_path=weights(libraries)).fit([0.2, 0.7], [1, 1]).predict_proba([0.5])
    np.testing.assert_allclose(single, [[0.25, 0.75]])


def test_weights_in_the_ratio_of_whole_numbers_repeat_rows_and_others_are_refused(libraries):
    p, y = world(10)
    scaling = TabICL(model_path=weights(libraries))
    assert scaling.fit(p, y, np.full(10, 0.5))._network.n_rows == 10
    for unit in (1, 0.1, 1e-200):
        assert scaling.fit(p, y, unit * np.repeat([2, 3], 5))._network.n_rows == 25
    with pytest.raises(ValueError, match="whole numbers"):
        scaling.fit(p, y, np.sqrt(np.arange(1, 11)))


@pytest.mark.parametrize("scaling", MAPS)
def test_survives_clone_and_a_round_trip_through_json(libraries, scaling, tmp_path: Path):
    p, y = world()
    path = weights(libraries)
    fitted = clone(scaling(model_path=path, laplace=1)).fit(p, y)
    fitted.save(tmp_path / "map.json")
    loaded = load(tmp_path / "map.json", model_path=path)
    np.testing.assert_array_equal(loaded.predict_proba(p), fitted.predict_proba(p))
    unplaced = load(tmp_path / "map.json")
    with pytest.raises(FileNotFoundError, match=r"needs the weights of its network.*load\(\.\.\., model_path"):
        unplaced.predict_proba(p)


@pytest.mark.parametrize("scaling", MAPS)
@pytest.mark.parametrize(
    "change", [{"model_path": "evil.ckpt"}, {"download": True}, {"checkpoint": "../evil.ckpt"}, {"checkpoint": 7}]
)
def test_a_file_cannot_choose_the_weights_nor_download_them(libraries, scaling, change, tmp_path: Path):
    path = tmp_path / "map.json"
    scaling(model_path=weights(libraries)).fit(*world()).save(path)
    document = json.loads(path.read_text())
    assert (document["map"]["params"]["model_path"], document["map"]["params"]["download"]) == (None, False)
    document["map"]["params"].update(change)
    document["checksum"] = persistence._checksum(document["map"])
    path.write_text(json.dumps(document))
    with pytest.raises(InvalidFile, match=r"only the caller of load|name of a file"):
        load(path, model_path=weights(libraries), download=True)


def test_the_caller_may_allow_a_download(libraries, tmp_path: Path):
    TabICL(download=True).fit(*world()).save(tmp_path / "map.json")
    assert load(tmp_path / "map.json").download is False
    loaded = load(tmp_path / "map.json", download=True)
    loaded.predict_proba([0.5])
    assert loaded._network.settings["allow_auto_download"] is True


@pytest.mark.filterwarnings("ignore")
def test_real_tabicl_code_runs_with_a_small_random_network(tmp_path: Path):
    pytest.importorskip("tabicl")
    torch = pytest.importorskip("torch")
    from tabicl._model.tabicl import TabICL as Network

    config = {"max_classes": 10, "embed_dim": 16, "col_num_blocks": 1, "row_num_blocks": 1, "icl_num_blocks": 1}
    config |= {"col_nhead": 2, "row_nhead": 2, "icl_nhead": 2, "col_num_inds": 8, "row_num_cls": 2}
    torch.save({"config": config, "state_dict": Network(**config).state_dict()}, tmp_path / "tiny.ckpt")
    p, y = world()
    q = TabICL(model_path=str(tmp_path / "tiny.ckpt"), device="cpu").fit(p, y).predict_proba(p)
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=0, atol=1e-12)
