from . import mlflow as mlflow
from . import sklearn as sklearn
from . import testing as testing
from . import torchmetrics as torchmetrics
