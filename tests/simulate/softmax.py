"""Confidence of a softmax, computed in the two ways that published code does."""

import numpy as np


def softmax_top(logits):
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return (powers / powers.sum(axis=1, keepdims=True)).max(axis=1)


def softmax_top_by_log_sum_exp(logits):
    top = logits.max(axis=1, keepdims=True)
    total = np.log(np.exp(logits - top).sum(axis=1, keepdims=True)) + top
    return np.minimum(np.exp(logits - total).max(axis=1), 1)
