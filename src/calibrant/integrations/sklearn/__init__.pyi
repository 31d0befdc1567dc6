from .classifier import EXPECTED_FAILED_CHECKS as EXPECTED_FAILED_CHECKS
from .classifier import RecalibratedClassifier as RecalibratedClassifier
from .classifier import ReliabilityDisplay as ReliabilityDisplay
from .classifier import Scorer as Scorer
from .classifier import make_scorers as make_scorers
