"""Which fit parameters a classifier inside another estimator gets: by metadata routing, or as far as it is plain."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter


def routing_enabled() -> bool:
    """Whether scikit-learn routes metadata by the requests of its estimators."""
    import sklearn

    return bool(sklearn.get_config()["enable_metadata_routing"])


def routed(owner: Any, weight: Any, groups: Any, fit_params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the classifier's `fit` and of the splitter's `split`, by what these have requested."""
    given = {"sample_weight": weight, "groups": groups, **fit_params}
    given = {name: value for name, value in given.items() if value is not None}
    params = process_routing(owner, "fit", **given)
    return dict(params["estimator"].fit), dict(params["splitter"].split)


def weight_parameter(estimator: Any) -> str:
    """The name by which weights reach a classifier without routing: its own, or that of the last step of a pipeline.

    Raises
    ------
    ValueError
        There is none: fitting it without weights would be another model than the one asked for.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> weight_parameter(make_pipeline("passthrough", LogisticRegression()))
    'logisticregression__sample_weight'
    """
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__{weight_parameter(last)}"
    kind = type(estimator).__name__
    message = (
        f"sample_weight cannot be passed on: {kind}.fit takes no weights. Fit without sample_weight; or fit the "
        f"classifier yourself and give it as FrozenEstimator, so that only the map is weighted; or let scikit-learn "
        "route weights, with set_config(enable_metadata_routing=True) and the set_fit_request of each step."
    )
    raise ValueError(message)
