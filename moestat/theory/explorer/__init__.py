"""The bound explorer: does ``d(p_G, p_G*) >~ D(G, G*)`` hold?  A search without sampling noise."""

from moestat.theory.explorer._explore import deviation_loss, explore
from moestat.theory.explorer._result import Exploration, Rung

__all__ = ["Exploration", "Rung", "deviation_loss", "explore"]


def __dir__() -> list[str]:
    return sorted(__all__)
