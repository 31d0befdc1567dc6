from .canvas import axes as axes
from .groups import forest as forest
from .panels import class_panels as class_panels
from .panels import confidence_strip as confidence_strip
from .regression import forecast_diagram as forecast_diagram
from .reliability import before_after as before_after
from .reliability import reliability_diagram as reliability_diagram
from .reliability import score_histogram as score_histogram
