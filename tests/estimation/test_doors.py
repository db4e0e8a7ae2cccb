"""The doors of the package: what is asked for by a wrong name, and what a call leaves behind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import moestat
from moestat.estimation.search.agreement import search_of
from moestat.model import designs
from moestat.rates import local_slopes

x = np.linspace(-1, 1, 60)
y = np.abs(x) + 0.1 * np.sin(9 * x)
QUICK = {"starts": [search_of(2, searches=1)], "rng": 0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda **k: moestat.fit("gaussian", x, y, **k), "fit has no"),
        (
            lambda **k: moestat.fit_formula("y ~ x", {"x": x, "y": y}, **k),
            "fit_formula has no",
        ),
        (
            lambda **k: moestat.fit_blocks("gaussian", moestat.Blocks.from_arrays(x, y), **k),
            "fit_blocks has no",
        ),
        (lambda **k: moestat.select("gaussian", x, y, **k), "select has no"),
    ],
)
def test_wrong_arguments_name_the_function_that_was_called_and_what_was_meant(call, message):
    for name, meant in {"random_state": "rng", "gat": "gate", "expertt": "expert"}.items():
        with pytest.raises(TypeError, match=f"{message} argument '{name}'; did you mean '{meant}'"):
            call(**{name: 0})


@pytest.mark.parametrize(
    ("options", "meant"),
    [({"gate": "sofmax"}, "softmax"), ({"expert": "polinomial"}, "polynomial")],
)
def test_names_that_are_spelt_alike_are_proposed(options, meant):
    with pytest.raises(ValueError, match=f"known: .*; did you mean '{meant}'"):
        moestat.fit("gaussian", x, y, **options)


def test_methods_name_what_they_lack_and_what_they_do_not_have():
    result = moestat.fit("gaussian", x, y, n_experts=1, rng=0)
    with pytest.raises(
        TypeError, match=r"summary has no argument 'detail'; did you mean 'details'"
    ):
        result.summary(detail=True)
    with pytest.raises(ValueError, match=r"comparisons: missing a required argument: .second"):
        result.comparisons({0: 1.0})
    with pytest.raises(TypeError, match=r"Uniform: too many positional arguments..* low, high"):
        moestat.Uniform(-1, 1, "x", "y")


def test_generators_of_any_kind_are_taken():
    for rng in (np.random.RandomState(0), np.random.Generator(np.random.PCG64(0)), 0, None):
        moestat.fit("gaussian", x, y, n_experts=1, starts=[search_of(2, searches=1)], rng=rng)
    one, other = (
        moestat.fit(
            "gaussian", x, y, starts=[search_of(4, searches=1)], rng=np.random.RandomState(3)
        ).theta
        for _ in range(2)
    )
    assert np.array_equal(one, other)


def test_fits_in_threads_leave_blas_as_it_was():
    def blas():
        return [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"]

    with threadpool_limits(2, "blas"):
        before = blas()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: moestat.fit("gaussian", x, y, **QUICK).llf, range(8)))
        assert blas() == before


def test_selection_takes_a_prior():
    chosen = moestat.select("gaussian", x, y, k=(1, 2), prior=moestat.Prior(), rng=0)
    assert chosen.best.prior == moestat.Prior()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: designs.Uniform().draw(-3, 1, np.random), "n must be an integer >= 0"),
        (lambda: designs.Uniform().draw(3, 2**31, np.random), "n_features must be at most"),
        (lambda: designs.Given([0.0, 1.0]).draw(10**18, 1, np.random), r"n = 1e\+18 rows .* GiB"),
        (lambda: moestat.family("gaussian", equal=[[]]), "equal must hold names of blocks"),
        (lambda: moestat.family("gaussian").holding(["x"]), r"features: inputs are 0\.\.0, got"),
        (lambda: moestat.family("gaussian").pack("a\nb"), "blocks must be a table"),
        (lambda: moestat.plot_rates(np.array(2.0)), "curves must be a list"),
        (
            lambda: local_slopes.exponents_seen(np.arange(1, 6), np.ones(4)),
            r"n of shape \(5,\) .*, loss of shape \(4,\)",
        ),
        (lambda: moestat.fit("gaussian", x, 1e-300 * y), "y holds only values below 1e-100"),
        (lambda: moestat.fit("multinomial", x, [np.nan, "a"] * 30), "y has 30 missing values"),
        (lambda: moestat.Prior(gate=1e300), "prior: gate must be a number in"),
    ],
)
def test_what_no_check_foresees_is_refused_by_the_name_of_an_argument(call, message):
    with pytest.raises(ValueError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_an_error_of_the_caller_passes_through_a_door():
    def broken(i):
        raise ValueError("no such file")

    with pytest.raises(ValueError, match="block 0: no such file"):
        moestat.fit_blocks("gaussian", moestat.Blocks(broken, 2), rng=0)
