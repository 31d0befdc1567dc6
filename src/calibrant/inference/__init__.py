"""How sure can one be? Intervals that cover, tests that hold their level, comparisons, bands and groups.

>>> import calibrant as cal
>>> from calibrant import inference
>>> inference.interval(cal.ece, cal.Binary([0, 0, 1, 1] * 50, [0.1, 0.3, 0.6, 0.8] * 50)).interval.method
"Inversion(n=999, seed=0, side='two-sided')"
"""

from calibrant.inference.bootstrap import Bootstrap as Bootstrap
from calibrant.inference.bootstrap import Clustered as Clustered
from calibrant.inference.calibration_tests import PUScore as PUScore
from calibrant.inference.calibration_tests import calibration_test as calibration_test
from calibrant.inference.chi_square_mixture import ChiSquareMixture as ChiSquareMixture
from calibrant.inference.classical_tests import Cox as Cox
from calibrant.inference.classical_tests import HosmerLemeshow as HosmerLemeshow
from calibrant.inference.classical_tests import KernelTest as KernelTest
from calibrant.inference.classical_tests import KolmogorovSmirnov as KolmogorovSmirnov
from calibrant.inference.classical_tests import Spiegelhalter as Spiegelhalter
from calibrant.inference.comparison import Comparison as Comparison
from calibrant.inference.comparison import compare as compare
from calibrant.inference.comparison import compare_many as compare_many
from calibrant.inference.groups import ByGroup as ByGroup
from calibrant.inference.groups import by_group as by_group
from calibrant.inference.intervals import SplitLowerBound as SplitLowerBound
from calibrant.inference.intervals import interval as interval
from calibrant.inference.inversion import Inversion as Inversion
from calibrant.inference.isotonic_bands import Band as Band
from calibrant.inference.isotonic_bands import IsotonicBand as IsotonicBand
from calibrant.inference.isotonic_bands import isotonic_band as isotonic_band
from calibrant.inference.multiscale import MultiScale as MultiScale
from calibrant.inference.paired_gaps import PairedGaps as PairedGaps
from calibrant.inference.regression_tests import MeanSquaredZ as MeanSquaredZ
from calibrant.inference.regression_tests import PitUniformity as PitUniformity
from calibrant.inference.regression_tests import SpreadChiSquare as SpreadChiSquare
from calibrant.inference.reliability import ReliabilityCurve as ReliabilityCurve
from calibrant.inference.reliability import reliability_curve as reliability_curve
