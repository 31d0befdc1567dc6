"""Rows to classify."""

from sklearn.datasets import make_classification


def rows(classes=2, n=600):
    return make_classification(n, n_informative=6, n_redundant=6, n_classes=classes, random_state=0)
