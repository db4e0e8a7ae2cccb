"""The machine code of the loops: full-width vectors, and no calls of scalar libm functions."""

from __future__ import annotations

import platform
import re

import numba
import pytest
from numba.core.registry import cpu_target

from moestat.compiler.jit import OPTIONS
from moestat.kernels import cpu
from moestat.kernels.build import NO_SAMPLES
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
    """Machine code of one atom's loop, compiled afresh: cached code cannot be inspected."""
    monkeypatch.setattr(cpu, "compile_code", numba.njit(**OPTIONS))
    return code_of(family.loops.atom_loop(family.placeholder(1).dtype), *cpu.NO_ATOM)


def code_of(loop, *arguments):
    loop.compile(tuple(map(numba.typeof, arguments)))
    (text,) = loop.inspect_asm().values()
    return text


def is_without_scalar_functions(text):
    for name in SCALAR_FUNCTIONS:
        assert not re.search(rf"[$\s]{name}(?:@|,|$)", text, re.MULTILINE), f"calls {name}"


@pytest.mark.parametrize("kind", MAIN_KINDS, ids=kind_id)
def test_an_atom_is_full_width_vector_code(kind, monkeypatch):
    register = widest_register()
    text = assembly_of(make(kind, 3, 1, 2), monkeypatch)
    vectors = re.findall(r"\tv(?:add|sub|mul|fn?m(?:add|sub)\d+)pd\t.*%([xyz]mm)\d+$", text, re.M)
    widest = vectors.count(register)
    assert widest > 5 * (len(vectors) - widest), f"{widest} of {len(vectors)} are full vectors"
    is_without_scalar_functions(text)


def test_a_pass_is_full_width_vector_code():
    register = widest_register()
    text = code_of(numba.njit(**OPTIONS)(cpu.mixture.py_func), *NO_SAMPLES)
    fused = re.findall(rf"\tvfn?m(?:add|sub)\d+pd\t.*%{register}", text)
    # One exponential is ten of them, and the loops over terms add to nine sums or more.
    assert len(fused) > 50, f"only {len(fused)} multiply-adds of {register} registers"
    is_without_scalar_functions(text)
