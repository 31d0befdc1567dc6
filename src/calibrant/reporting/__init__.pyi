from .build import report as report
from .model import Finding as Finding
from .model import Group as Group
from .model import Measure as Measure
from .model import Repair as Repair
from .model import Report as Report
