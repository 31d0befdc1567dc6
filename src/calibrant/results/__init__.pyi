from .estimate import Component as Component
from .estimate import Estimate as Estimate
from .estimate import Interval as Interval
from .estimate import Significance as Significance
from .target import Clipped as Clipped
from .target import Target as Target
from .target import estimates as estimates
