from .build import report as report
from .model import Finding as Finding
from .model import Measure as Measure
from .model import Report as Report
