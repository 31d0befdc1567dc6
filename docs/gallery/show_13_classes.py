"""
Multiclass
==========

The top label, then each class against the rest.
"""

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
logits = 2 * rng.normal(size=(3000, 4))
vectors = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
true = np.exp(0.6 * logits) / np.exp(0.6 * logits).sum(axis=1, keepdims=True)  # the model is too sharp
y = np.array([rng.choice(4, p=v) for v in true])

cal.plot.class_panels(cal.inference.class_tables(cal.Multiclass(y, vectors)))
