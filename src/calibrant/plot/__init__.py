"""Figures (needs matplotlib): each draws on the axes it is given, and its data can be had without it.

No setting of matplotlib is changed. The figures of simulations are methods of their results, e.g.
``bias_table(...).plot()``; that of positive-unlabeled data is ``pu.reliability_diagram(pu.reliability(data))``.
"""

from calibrant.plot.canvas import axes as axes
from calibrant.plot.groups import ForestRow as ForestRow
from calibrant.plot.groups import forest as forest
from calibrant.plot.groups import forest_rows as forest_rows
from calibrant.plot.panels import ConfidenceGaps as ConfidenceGaps
from calibrant.plot.panels import class_panels as class_panels
from calibrant.plot.panels import class_tables as class_tables
from calibrant.plot.panels import confidence_gaps as confidence_gaps
from calibrant.plot.panels import confidence_strip as confidence_strip
from calibrant.plot.regression import forecast_diagram as forecast_diagram
from calibrant.plot.reliability import before_after as before_after
from calibrant.plot.reliability import corp_curve as corp_curve
from calibrant.plot.reliability import reliability_diagram as reliability_diagram
from calibrant.plot.reliability import score_histogram as score_histogram
