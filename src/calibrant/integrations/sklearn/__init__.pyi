from .classifier import EXPECTED_FAILED_CHECKS as EXPECTED_FAILED_CHECKS
from .classifier import RecalibratedClassifier as RecalibratedClassifier
from .display import ReliabilityDisplay as ReliabilityDisplay
from .scorers import Scorer as Scorer
from .scorers import make_scorers as make_scorers
