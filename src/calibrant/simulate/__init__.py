"""Bias by construction: worlds of known error, and what every estimator makes of them at your sample size.

>>> from calibrant import simulate
>>> world = simulate.World(simulate.Uniform(), simulate.Power(2))
>>> round(world.true_error(norm=2), 5)
0.18257
"""

from calibrant.results.target import Clipped as Clipped
from calibrant.simulate.advice import Advice as Advice
from calibrant.simulate.advice import advise as advise
from calibrant.simulate.bias_grid import BiasTable as BiasTable
from calibrant.simulate.bias_grid import bias_table as bias_table
from calibrant.simulate.calibration_curves import Blend as Blend
from calibrant.simulate.calibration_curves import Curve as Curve
from calibrant.simulate.calibration_curves import FromScores as FromScores
from calibrant.simulate.calibration_curves import Glm as Glm
from calibrant.simulate.calibration_curves import Identity as Identity
from calibrant.simulate.calibration_curves import Power as Power
from calibrant.simulate.calibration_curves import Shift as Shift
from calibrant.simulate.calibration_curves import Temperature as Temperature
from calibrant.simulate.calibration_curves import Wavy as Wavy
from calibrant.simulate.calibration_curves import WithEnds as WithEnds
from calibrant.simulate.curve_fitting import CurveFit as CurveFit
from calibrant.simulate.curve_fitting import fit_beta as fit_beta
from calibrant.simulate.curve_fitting import fit_curves as fit_curves
from calibrant.simulate.detection import Detection as Detection
from calibrant.simulate.detection import power as power
from calibrant.simulate.estimation_bias import Bias as Bias
from calibrant.simulate.estimation_bias import bias as bias
from calibrant.simulate.estimation_bias import estimates as estimates
from calibrant.simulate.multiclass_worlds import Dirichlet as Dirichlet
from calibrant.simulate.multiclass_worlds import MulticlassWorld as MulticlassWorld
from calibrant.simulate.regression_worlds import LogNormalSpreads as LogNormalSpreads
from calibrant.simulate.regression_worlds import RegressionWorld as RegressionWorld
from calibrant.simulate.regression_worlds import Scaled as Scaled
from calibrant.simulate.regression_worlds import Spreads as Spreads
from calibrant.simulate.regression_worlds import UniformSpreads as UniformSpreads
from calibrant.simulate.score_distributions import Beta as Beta
from calibrant.simulate.score_distributions import Empirical as Empirical
from calibrant.simulate.score_distributions import LogitMixture as LogitMixture
from calibrant.simulate.score_distributions import Scores as Scores
from calibrant.simulate.score_distributions import Uniform as Uniform
from calibrant.simulate.score_distributions import WithAtoms as WithAtoms
from calibrant.simulate.unlabeled_worlds import PUWorld as PUWorld
from calibrant.simulate.world_fit import Goodness as Goodness
from calibrant.simulate.world_fit import WorldFit as WorldFit
from calibrant.simulate.world_fit import fit_world as fit_world
from calibrant.simulate.worlds import PAPER_WORLDS as PAPER_WORLDS
from calibrant.simulate.worlds import World as World
