"""Bias by construction: worlds of known error, and what every estimator makes of them at your sample size.

>>> from calibrant import simulate
>>> world = simulate.World(simulate.Uniform(), simulate.Power(2))
>>> round(world.true_error(norm=2), 5)
0.18257
"""

from calibrant.simulate.advise import Advice as Advice
from calibrant.simulate.advise import advise as advise
from calibrant.simulate.bias import Bias as Bias
from calibrant.simulate.bias import bias as bias
from calibrant.simulate.bias import estimates as estimates
from calibrant.simulate.curves import Blend as Blend
from calibrant.simulate.curves import Curve as Curve
from calibrant.simulate.curves import FromScores as FromScores
from calibrant.simulate.curves import Glm as Glm
from calibrant.simulate.curves import Identity as Identity
from calibrant.simulate.curves import Power as Power
from calibrant.simulate.curves import Shift as Shift
from calibrant.simulate.curves import Temperature as Temperature
from calibrant.simulate.curves import Wavy as Wavy
from calibrant.simulate.curves import WithEnds as WithEnds
from calibrant.simulate.detection import Detection as Detection
from calibrant.simulate.detection import power as power
from calibrant.simulate.fit import Goodness as Goodness
from calibrant.simulate.fit import WorldFit as WorldFit
from calibrant.simulate.fit import fit_world as fit_world
from calibrant.simulate.likelihood import CurveFit as CurveFit
from calibrant.simulate.likelihood import fit_beta as fit_beta
from calibrant.simulate.likelihood import fit_curves as fit_curves
from calibrant.simulate.multiclass import Dirichlet as Dirichlet
from calibrant.simulate.multiclass import MulticlassWorld as MulticlassWorld
from calibrant.simulate.registry import Clipped as Clipped
from calibrant.simulate.regression import LogNormalSpreads as LogNormalSpreads
from calibrant.simulate.regression import RegressionWorld as RegressionWorld
from calibrant.simulate.regression import Scaled as Scaled
from calibrant.simulate.regression import Spreads as Spreads
from calibrant.simulate.regression import UniformSpreads as UniformSpreads
from calibrant.simulate.scores import Beta as Beta
from calibrant.simulate.scores import Empirical as Empirical
from calibrant.simulate.scores import LogitMixture as LogitMixture
from calibrant.simulate.scores import Scores as Scores
from calibrant.simulate.scores import Uniform as Uniform
from calibrant.simulate.scores import WithAtoms as WithAtoms
from calibrant.simulate.table import BiasTable as BiasTable
from calibrant.simulate.table import bias_table as bias_table
from calibrant.simulate.unlabeled import PUWorld as PUWorld
from calibrant.simulate.worlds import PAPER_WORLDS as PAPER_WORLDS
from calibrant.simulate.worlds import World as World
