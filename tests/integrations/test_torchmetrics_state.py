"""The metric inside torchmetrics and loops like Lightning's: epochs, checkpoints, devices and processes."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest

import calibrant as cal
from calibrant.integrations.torchmetrics import CalibrationError, torch_metric

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torchmetrics warns of computing before any update
GRID = cal.table.HybridGrid(2**10)


@pytest.fixture(scope="module")
def batches(rows):
    y, p = (torch.as_tensor(part) for part in rows)
    return list(zip(p.split(700), y.split(700), strict=True))


def fed(batches, **options):
    metric = torch_metric(grid=GRID, **options)
    for p, y in batches:
        metric.update(p, y)
    return metric


def expected(batches):
    plain = CalibrationError(grid=GRID)
    for p, y in batches:
        plain.update(p, y)
    return plain.compute()


def test_epochs_give_the_estimate_of_their_own_rows(batches):
    """What Lightning does: forward per step, compute at the end of an epoch, reset before the next."""
    metric = torch_metric(grid=GRID)
    for epoch in (batches, batches[:2], batches[2:]):
        steps = [metric(p, y) for p, y in epoch]
        assert float(steps[1]) == pytest.approx(float(expected(epoch[1:2])))
        assert float(metric.compute()) == pytest.approx(float(expected(epoch)), abs=1e-12)
        assert metric.estimate().n == sum(len(y) for _, y in epoch)
        metric.reset()
        assert metric.table().n == 0


def test_it_stands_in_a_collection_beside_others(batches):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.metrics = torchmetrics.MetricCollection(
                {"ece": torch_metric(grid=GRID), "peer": torchmetrics.classification.BinaryCalibrationError(n_bins=15)}
            )

    model = Model()
    for p, y in batches:
        model.metrics.update(p, y)
    assert float(model.metrics.compute()["ece"]) == pytest.approx(float(expected(batches)), abs=1e-12)


def test_against_the_peer_with_its_bins(batches):
    metric = torch_metric(partial(cal.ece, bins=cal.EqualWidth(15)), grid=cal.table.HybridGrid(2**10, equal_width=15))
    peer = torchmetrics.classification.BinaryCalibrationError(n_bins=15)
    for p, y in batches:
        metric.update(p, y)
        peer.update(p, y)
    assert float(metric.compute()) == pytest.approx(float(peer.compute()), abs=1e-6)


def test_a_checkpoint_goes_on_where_it_stopped(batches):
    first = fed(batches[:2])
    first.persistent(True)  # as torchmetrics has it: the state is saved only on request
    again = torch_metric(grid=GRID)
    again.persistent(True)
    again.load_state_dict(copy.deepcopy(first.state_dict()))
    for p, y in batches[2:]:
        again.update(p, y)
    assert float(again.compute()) == pytest.approx(float(expected(batches)), abs=1e-12)
    sent = pickle.loads(pickle.dumps(first))
    assert float(sent.compute()) == float(first.compute())


def test_precision_stays_where_the_model_is_halved_or_moved(batches):
    metric = fed(batches)
    value = metric.compute()
    assert metric.half().to("cpu").sums.dtype == torch.float64
    assert metric.compute() == value
    meta = torch_metric(grid=GRID).to("meta")
    assert {meta.sums.device.type, meta.low.device.type, meta.high.device.type} == {"meta"}


def test_processes_are_reduced_to_the_table_of_all_rows(batches):
    """Gathered as a group of two would: each state with that of the other process."""
    other = fed(batches[2:])
    theirs = iter([other.sums, other.low, other.high])
    metric = fed(
        batches[:2],
        dist_sync_fn=lambda state, group=None: [state, next(theirs)],
        distributed_available_fn=lambda: True,
    )
    assert float(metric.compute()) == pytest.approx(float(expected(batches)), abs=1e-12)
    assert metric.table().n == sum(len(y) for _, y in batches[:2])  # and each process keeps its own
    merged = fed(batches[:2])
    merged.merge_state(other)
    assert merged.table().n == 3000


def test_classes_and_what_is_left_out_are_as_without_torch():
    p = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    metric = torch_metric(ignore_index=-1, grid=GRID)
    metric.update(p, torch.tensor([0, -1, 1]))
    metric.update(p, torch.full((3,), -1))
    assert metric.table().n == 2
    np.testing.assert_allclose(metric.table().predicted.sum(), 1.1, rtol=1e-6)
    with pytest.raises(cal.InvalidPredictions, match=r"\[0, 1\]"):
        metric.update(torch.tensor([3.0]), torch.tensor([1]))
