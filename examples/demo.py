"""Measure a real model: a naive Bayes classifier on scikit-learn's breast cancer data."""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

import calibrant as cal

features, outcome = load_breast_cancer(return_X_y=True)
stated = cross_val_predict(GaussianNB(), features, outcome, cv=5, method="predict_proba")[:, 1]
data = cal.Binary(outcome, stated)

print(f"Naive Bayes on {len(data)} biopsies, cross-validated: can its probabilities be believed?\n")
for estimate in (
    cal.ece(data, bins=cal.EqualWidth(15)),
    cal.ece(data),
    cal.debiased_ece(data, norm=1),
    cal.sweep_ece(data),
    cal.ks_error(data),
    cal.brier(data),
):
    print(f"  {estimate.name:<18} {estimate:>7.4f}   {estimate.method}")

parts = cal.decompose(data, "brier")
saved = parts.miscalibration / parts.score
print(f"\nRecalibration could save at most {saved:.0%} of its Brier score of {parts.score:.4f}.")
