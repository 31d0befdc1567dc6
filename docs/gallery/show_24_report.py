"""
The report in a notebook
========================

What `report` shows where it is the last line of a cell; `.save("report.html")` writes the whole page.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(2000)
y = rng.random(2000) < 0.5 + 0.7 * (p - 0.5)  # probabilities are too extreme
data = cal.Binary(y, p)

cal.report(data, title="Demo")
# sphinx_gallery_thumbnail_path = "images/report.png"
