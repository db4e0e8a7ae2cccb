"""The machine code of the loops: full-width vectors, and no calls of scalar libm functions."""

from __future__ import annotations

import platform
import re

import numba
import numpy as np
import pytest
from numba.core.registry import cpu_target

from moestat.compiler.jit import OPTIONS
from moestat.kernels import cpu
from moestat.kernels.atom import build_atom
from moestat.kernels.records import NO_SUMS, BySample, Data
from moestat.kernels.terms import build_terms
from tests.kinds import kind_id, make

# gelu is not among them: its erfc is a scalar call.
MAIN_KINDS = [
    ("gaussian", "softmax", "linear"),
    ("multinomial", "sigmoid", "linear"),
    ("multinomial", "sigmoid-inner", "linear"),
    ("gaussian", "competition", {"name": "ffn", "hidden": 2}),
]
SCALAR_FUNCTIONS = ("exp", "exp2", "expm1", "log", "log1p", "log2", "pow", "tanh", "erfc", "fmod")


def widest_register():
    """The name of the widest vector registers that numba compiles for."""
    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("the names of registers and instructions are those of x86-64")
    features = cpu_target.target_context.codegen()._tm_features.split(",")
    if "+avx512f" in features:
        return "zmm"
    if "+avx2" in features:
        return "ymm"
    return pytest.skip("the processor has no vectors of 256 bits")


def assembly_of(family, monkeypatch):
    """Machine code of the mixture loop, compiled afresh: cached code cannot be inspected."""
    monkeypatch.setattr(cpu, "compile_loop", numba.njit(**OPTIONS))
    sparse = family.gate.n_active is not None
    atom = build_atom(
        family.gate.block, family.expert.block, family.likelihood.block, family.gate.reads_response
    )
    loop = cpu.mixture_loop(*atom, sparse, family.gate.reads_response)
    n, none, no_rows = 8, np.empty(0), np.empty((0, 0))
    data = Data(np.zeros((1, n)), family.placeholder(n), np.ones(n), no_rows)
    terms = build_terms(1, (), 0, 0, 1, complete=False, order=0)
    unused = BySample(no_rows, no_rows, none)
    loop(np.ones(family.n_params), family.coefficients, data, 0, NO_SUMS, unused, terms)
    (text,) = loop.inspect_asm().values()
    return text


@pytest.mark.parametrize("kind", MAIN_KINDS, ids=kind_id)
def test_hot_loops_are_full_width_vector_code(kind, monkeypatch):
    register = widest_register()
    text = assembly_of(make(kind, 3, 1, 2), monkeypatch)
    fused = re.findall(rf"\tvfn?m(?:add|sub)\d+pd\t.*%{register}", text)
    # One exponential is ten of them, and the loops over terms add to nine sums or more.
    assert len(fused) > 50, f"only {len(fused)} multiply-adds of {register} registers"
    for name in SCALAR_FUNCTIONS:
        assert not re.search(rf"[$\s]{name}(?:@|,|$)", text, re.MULTILINE), f"calls {name}"
