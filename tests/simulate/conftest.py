"""Real predictions that worlds are fitted to."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def densenet(shared_data):
    path = shared_data / "classification" / "kangsepp_densenet40_cifar10.npz"
    if not path.exists():
        pytest.skip(f"the logits of densenet40_c10 are not at {path}")
    stored = np.load(path)
    logits, labels = stored["logits_test"], stored["labels_test"]
    return logits, (logits.argmax(axis=1) == labels).astype(np.int8)
