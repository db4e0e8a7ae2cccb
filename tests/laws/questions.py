"""Questions about a fit, and how each is asked of the rows of the fit as of new ones."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import moestat

WHICH = ("mean", "class", "proba", "experts", "gate", "variance", "quantile", "cdf", "density")


def numbers(answer: Any) -> np.ndarray:
    """An answer as numbers; labels as they are."""
    values = np.asarray(answer)
    return values if values.dtype.kind in "OUS" else values.astype(np.float64)


def response_of(case: Any, frame: pd.DataFrame) -> Any:
    """The columns of the response in a table of rows."""
    names = {"several": ["y1", "y2"], "censored": ["low", "high"], "trials": ["s", "t"]}
    return frame[names[case.member.kind]] if case.member.kind in names else frame["y"]


ABOUT_ROWS: dict[str, Any] = {
    "log_likelihood": lambda case, r, d, y: r.log_likelihood(d, y),
    "score_samples": lambda case, r, d, y: r.score_samples(d, y),
    "responsibilities": lambda case, r, d, y: r.responsibilities(d, y),
    "quantile_residuals": lambda case, r, d, y: r.quantile_residuals(0, X=d, y=y),
    "predict": lambda case, r, d, y: r.predict(d),
    **{
        f"predict {which}": lambda case, r, d, y, which=which: r.predict(
            d, which, **({"y": y} if which in ("cdf", "density") else {})
        )
        for which in WHICH
    },
    "get_prediction": lambda case, r, d, y: r.get_prediction(d).summary_frame(),
    "simulate": lambda case, r, d, y: r.simulate(d, rng=0),
}
"""Answers that rows of the fit, asked as new rows, must have again."""

OWN: dict[str, Any] = {
    "log_likelihood": lambda r: r.llf,
    "score_samples": lambda r: r.score_samples(),
    "responsibilities": lambda r: np.asarray(r.responsibilities),
    "quantile_residuals": lambda r: r.quantile_residuals(0),
    "predict": lambda r: r.predict(),
    **{f"predict {which}": lambda r, which=which: r.predict(None, which) for which in WHICH},
    "get_prediction": lambda r: r.get_prediction().summary_frame(),
    "simulate": lambda r: r.simulate(rng=0),
}
"""The same answers for the rows of the fit."""

OTHERS: dict[str, Any] = {
    "summary": lambda case, r: str(r.summary()),
    "summary html": lambda case, r: r._repr_html_(),
    "summary latex": lambda case, r: r.summary().as_latex(),
    "tidy": lambda case, r: r.tidy(),
    "conf_int": lambda case, r: r.conf_int(),
    "cov_params": lambda case, r: r.cov_params(),
    "pvalues": lambda case, r: r.pvalues,
    "bic": lambda case, r: r.bic,
    "icl": lambda case, r: r.icl,
    "fittedvalues": lambda case, r: r.fittedvalues,
    "resid": lambda case, r: r.resid,
    "HC0": lambda case, r: r.get_robustcov_results("HC0").bse,
    "cluster": lambda case, r: r.get_robustcov_results("cluster", case.rows["id"]).bse,
    "bootstrap": lambda case, r: str(r.bootstrap(3, rng=0)),
    "parametric bootstrap": lambda case, r: str(r.bootstrap(3, "parametric", rng=0)),
    "influence": lambda case, r: r.influence().displacement,
    "margeff": lambda case, r: r.get_margeff().summary_frame(),
    "wald": lambda case, r: r.wald_test(f"{_told(r)} = 0").statistic,
    "t_test": lambda case, r: r.t_test(f"{_told(r)} = 0").tvalue,
    "plot of a profile": lambda case, r: r.profile(_told(r)).plot(),
    "plot": lambda case, r: r.plot(),
    "plot_gate": lambda case, r: r.plot_gate(),
    "plot_uncertainty": lambda case, r: r.plot_uncertainty(),
    "plot_posterior": lambda case, r: r.plot_posterior(),
    "plot_effects": lambda case, r: r.plot_effects(),
    "plot_coefficients": lambda case, r: r.plot_coefficients(),
    "plot_qq": lambda case, r: r.plot_qq(),
    "plot_calibration": lambda case, r: r.plot_calibration(),
    "plot_influence": lambda case, r: r.plot_influence(),
    "relabel": lambda case, r: r.relabel([2, 1]).llf,
    "without_data": lambda case, r: str(r.without_data().summary()),
    "explain": lambda case, r: str(r.explain()),
    "get_prediction of known groups": lambda case, r: r.get_prediction(
        groups=r.rows.groups
    ).summary_frame(),
    "deviance": lambda case, r: r.deviance,
    "llnull": lambda case, r: r.llnull,
    "get_influence": lambda case, r: r.get_influence().summary_frame(),
    "survey": lambda case, r: r.get_robustcov_results("survey", case.rows["id"]).bse,
    "classes": lambda case, r: r.classes(),
    "distal": lambda case, r: str(r.distal(_by_group(case))),
    "covariates": lambda case, r: str(r.covariates(pd.DataFrame({"q": _by_group(case)}))),
}
"""Questions that must have an answer, or be refused in one sentence."""

SAME: dict[str, Any] = {
    "bse": lambda case, r: _positive(r.bse),
    "log_posterior": lambda case, r: r.log_posterior,
    "aic": lambda case, r: r.aic,
    "bic": lambda case, r: r.bic,
    "icl": lambda case, r: r.icl,
    "HC0": lambda case, r: _positive(r.get_robustcov_results("HC0").bse),
    "margeff": lambda case, r: r.get_margeff().summary_frame(),
    "classification_table": lambda case, r: _table(r),
    "classes": lambda case, r: r.classes(),
    "llnull": lambda case, r: r.llnull,
    "dendrogram": lambda case, r: moestat.dendrogram(r).criterion,
    "plot_calibration": lambda case, r: _drawn(r.plot_calibration()),
    "plot_posterior": lambda case, r: _drawn(r.plot_posterior()),
    "plot_coefficients": lambda case, r: _drawn(r.plot_coefficients()),
    "predict mean": lambda case, r: r.predict(_first(case, r), "mean"),
    "predict quantile": lambda case, r: r.predict(_first(case, r), "quantile", **_trials(case)),
    "get_prediction": lambda case, r: r.get_prediction(
        _first(case, r), **_trials(case)
    ).summary_frame(),
}
"""Answers that two fits with one maximum share."""


def _positive(errors: Any) -> np.ndarray:
    """Standard errors without those of references and known coefficients."""
    values = np.asarray(errors, dtype=np.float64)
    return values[values > 0.0]


def _table(result: Any) -> Any:
    """Sizes of two parts of the rows by most probable expert."""
    return result.classification_table(np.asarray(result.rows.X)[:, 0] > 0.0)


def _drawn(axes: Any) -> np.ndarray:
    """Sums of the coordinates of lines, and of the heights of bars."""
    drawn = []
    for each in np.ravel(axes):
        drawn += [np.nansum(line.get_xydata(), axis=0) for line in each.lines]
        drawn.append([sum(patch.get_height() for patch in each.patches), 0.0])
    plt.close("all")
    return np.array(drawn)


def _first(case: Any, result: Any) -> Any:
    """The first rows of the case, as a table or as an array."""
    rows = case.rows.iloc[:10]
    return rows if result.data.formula is not None else result.data.X[:10]


def _trials(case: Any) -> dict[str, Any]:
    """Numbers of trials of the first rows of the case, which an array of inputs does not have."""
    return {"trials": case.rows["t"].iloc[:10]} if case.member.kind == "trials" else {}


def _by_group(case: Any) -> Any:
    """A variable of the groups, at the rows, with their index."""
    return pd.Series(pd.factorize(case.rows["id"])[0] % 5, case.rows.index)


def _told(result: Any) -> str:
    """The name of a parameter with a standard error."""
    errors = result.theta_bse
    at = np.flatnonzero(np.isfinite(errors) & (errors > 0.0))
    return result.param_names[at[-1] if at.size else 0]
