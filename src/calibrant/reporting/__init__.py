"""From predictions to an answer a person can read."""

from calibrant.reporting.build import report
from calibrant.reporting.model import Finding, Group, Measure, Repair, Report

__all__ = ["Finding", "Group", "Measure", "Repair", "Report", "report"]
