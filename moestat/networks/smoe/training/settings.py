"""What one training run is made of, as plain data; PyTorch is not needed to read it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

from moestat.base.door import door, doors
from moestat.base.validate import one_of, positive_int, real_in
from moestat.networks.smoe.training.names import TASKS

__all__ = ["CHOICES", "Settings", "make_settings"]

CHOICES: Mapping[str, Collection[str]] = {
    "task": TASKS,
    "method": (
        "smoe",
        "xmoe",
        "fixed",
        "stable",
        "hash",
        "compete-v2",
        "compete-v1",
        "competition",
        "competition-v1",
        "dense",
    ),
    "expert": ("mlp", "gated", "linear"),
    "response": ("softplus", "norm", "silu", "sigmoid", "relu", "softmax"),
    "attention": ("softmax", "sigmoid"),
    "decay": ("cosine", "inverse-sqrt", "constant"),
    "reading": ("paper", "code"),
}
"""Names that a setting may take."""


@doors
@dataclass(frozen=True)
class Settings:
    """One training run.

    Parameters
    ----------
    task : str
        What the data are.
    method : str
        How inputs are routed.
    expert, response, attention : str
        Experts; their response that competes; kernel of attention.
    decay : str
        How the learning rate falls.
    n_experts, top_k : int
        Experts N, and K <= N of them that answer an input.
    n_hidden : int
        Hidden units of an expert.
    balance, z, gamma, alpha, beta : float
        Weights of the losses, as the layers take them.
    rate : float
        Rate omega (or lambda) of competition.
    warm_up : float
        Share of steps without competition.
    limit : int
        A_max; 0 for none.
    learning_rate : float
        Of Adam (Kingma and Ba, 2014).
    n_steps : int
        Steps.
    batch_size : int
        Examples (or sequences) per step.
    n : int
        Training examples, for the task ``gaussian`` alone; all others draw new ones.
    n_test : int
        Examples (or sequences) of the test sample, and of the validation sample.
    look_every : int
        Steps between two points of a learning curve.
    width, n_layers, n_heads, context : int
        Width, layers, heads and context of the language model.
    dense_steps : int
        Steps of the dense model before it is upcycled.
    choice : int
        Number of the point in a grid; nothing depends on it.
    reading : str
        What is taken for the method where its paper and its authors' code differ.
    weight_decay : float
        Of AdamW (Loshchilov and Hutter 2019); 0 is Adam.
    starts : int
        Starts, of which the one with the least validation loss counts.
    """

    task: str
    method: str
    n_steps: int
    expert: str = "mlp"
    response: str = "softplus"
    attention: str = "softmax"
    decay: str = "cosine"
    n_experts: int = 8
    top_k: int = 2
    n_hidden: int = 32
    balance: float = 0.0
    z: float = 0.0
    gamma: float = 0.01
    alpha: float = 0.1
    beta: float = 0.005
    rate: float = 0.07
    warm_up: float = 0.05
    limit: int = 0
    learning_rate: float = 3e-3
    batch_size: int = 256
    n: int = 1000
    n_test: int = 4096
    look_every: int = 100
    width: int = 64
    n_layers: int = 2
    n_heads: int = 4
    context: int = 64
    dense_steps: int = 0
    choice: int = 1
    reading: str = "paper"
    weight_decay: float = 0.0
    starts: int = 1


_SHARES = ("rate", "warm_up")
_WEIGHTS = ("balance", "z", "gamma", "alpha", "beta", "weight_decay")
_MAY_BE_ZERO = ("limit", "dense_steps")


@door()
def make_settings(given: Mapping[str, object]) -> Settings:
    """Settings from their fields, defaults filled in and everything checked.

    Parameters
    ----------
    given : mapping
        Values by name of field.

    Returns
    -------
    Settings
        The settings.

    Raises
    ------
    ValueError
        If a field is missing or out of range; the message names it.

    Examples
    --------
    >>> make_settings({"task": "clusters", "method": "smoe", "n_steps": 10}).top_k
    2
    """
    for name in ("task", "method", "n_steps"):
        if name not in given:
            raise ValueError(f"{name} is missing")
    checked = {name: _check_field(name, value) for name, value in given.items()}
    settings = Settings(**checked)
    if settings.top_k > settings.n_experts:
        raise ValueError(
            f"top_k must be in 1..{settings.n_experts}, the number of experts, got {settings.top_k}"
        )
    if settings.width % settings.n_heads:
        raise ValueError(f"n_heads must divide the width {settings.width}, got {settings.n_heads}")
    return settings


def _check_field(name: str, value: object) -> Any:
    if name in CHOICES:
        return one_of(name, value, CHOICES[name])
    if name in _SHARES:
        return real_in(name, value, 0.0, 1.0)
    if name in _WEIGHTS:
        return real_in(name, value, 0.0)
    if name == "learning_rate":
        return real_in(name, value, 0.0, open_low=True)
    return positive_int(name, value, 0 if name in _MAY_BE_ZERO else 1)


NAMES = tuple(field.name for field in fields(Settings))
"""Fields, in order."""
