"""Specs of small sweeps of two classes, which tests put together from their parts."""

from __future__ import annotations

DESIGN = """
[design]
low = -4
high = 4
"""

STARTS = "starts = { truth = 1, noise = 0.1 }"
EM_STEPS = f"""\
solver = {{ name = "em", max_iterations = 20 }}
{STARTS}
require_certificate = false"""
"""Twenty steps of EM, whose end need not be certified."""


def sweep(
    title: str, *parts: str, seed: int = 7, replicates: int = 3, n: object = "[200, 400]"
) -> str:
    """The text of a spec: its head, and its parts in order."""
    head = f'\ntitle = "{title}"\nseed = {seed}\nreplicates = {replicates}\nn = {n}\n'
    return head + "".join(parts)


def classes(name: str = "t") -> str:
    """Two classes with a softmax gate, as the truth that curves call `name`."""
    return f"""
[truth.{name}]
gate = "softmax"
beta0 = [-2.0, 0.0]
beta1 = [3.0, 0.0]
a = [[1.0, 0.0], [1.0, 0.0]]
b = [[-3.0, 0.0], [2.5, 0.0]]
"""


def curve(name: str, n_experts: int, *lines: str, truth: str = "t", panel: str = "") -> str:
    """A curve with the loss softmax-D1; `lines` are its further keys."""
    panel = f'panel = "{panel}"\n' if panel else ""
    return f"""
[[curve]]
name = "{name}"
{panel}truth = "{truth}"
n_experts = {n_experts}
loss = "softmax-D1"
""" + "".join(f"{line}\n" for line in lines)
