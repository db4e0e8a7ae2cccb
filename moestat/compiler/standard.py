"""Compilation through numba's public interface alone: for versions that `lean` does not know.

The same machine code within a few percent, for about half as long again until a first fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload

from moestat.compiler.identity import named


def register_part(
    function: Callable[..., Any], forceinline: bool, fastmath: frozenset[str], error_model: str
) -> None:
    """Let compiled loops call a function.

    Without numba's runtime there is no counting of references.
    """
    options: Any = {
        "_nrt": False,
        "forceinline": forceinline,
        "fastmath": set(fastmath),
        "error_model": error_model,
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
    }

    @overload(function, jit_options=options, strict=False)
    def implementation(*args: Any) -> Any:
        return named(function)


def loop_options() -> dict[str, Any]:
    """Options of loops besides the common ones: none."""
    return {}


def keep_on_disk(loop: Any) -> Any:
    """Keep the machine code of a loop on disk, where numba's settings say."""
    loop.enable_caching()
    return loop
