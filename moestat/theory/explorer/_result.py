"""What an exploration found: the worst directions along decreasing radii, and what they say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from moestat.base.types import FloatArray
from moestat.model.family import Family

WIDE = 1e-2
"""A distance that is 0 to rounding at a D of this or more is no slow rate: it vanishes."""

_ROUNDING = 1e-14  # of the largest deviation: a distance below is not resolved

_BOUNDED, _FALLING = 1.1, 1.3  # exponents of d against D up to which, and from which on


@dataclass(frozen=True)
class Rung:
    """The measure with the least distance found at one radius."""

    loss: float
    """``D(G, G*)``."""
    distance: float
    """Mean Hellinger distance ``E_X d_H``, or L2(mu) distance of regression functions."""
    root: float
    """Root mean square ``(E_X d_H^2)^(1/2)``, which was minimised; the L2(mu) distance again."""
    total_variation: float
    """``E_X d_V`` at this measure; NaN for a regression function."""
    params: FloatArray = field(repr=False)
    """The measure (P,), packed: it can be evaluated again."""
    error: float
    """Change of the root mean square when the nodes are doubled, relative."""
    reference: str
    """How the measure near which it lies represents the truth."""
    pinned: str
    """The deviation that was pinned."""
    moves: Mapping[str, float] = field(repr=False)
    """Largest deviation in each block of each cell, named ``block, cell j``."""
    converged: bool
    """Whether the descent to it converged."""
    exactly: Callable[[int], tuple[float, float]] = field(repr=False, compare=False)
    """``exactly(digits)``: the root mean square at the search's nodes and its value there in
    arithmetic of that many digits."""

    @property
    def ratio(self) -> float:
        """``d / D``."""
        return self.distance / self.loss

    @property
    def resolved(self) -> bool:
        """Whether the distance stands clear of its rounding, 1e-16 of the largest deviation."""
        return self.root > _ROUNDING * max(self.moves.values(), default=0.0)


@dataclass(frozen=True, repr=False)
class Exploration:
    """Least distances found at decreasing values of a loss."""

    family: Family
    truth_family: Family
    """The fitted family, and the same with the truth's number of atoms."""
    truth: FloatArray = field(repr=False)
    """Packed parameters (P*,) of the truth."""
    loss: str
    """Name of the loss D."""
    rungs: tuple[Rung, ...]
    """By decreasing radius; the least ratio d / D that was found near each."""

    def _logs(self) -> tuple[FloatArray, FloatArray]:
        """Logs of D and d at the radii where d is resolved."""
        rungs = [rung for rung in self.rungs if rung.resolved and rung.distance > 0.0]
        loss, distance = [rung.loss for rung in rungs], [rung.distance for rung in rungs]
        return np.log(loss), np.log(distance)

    @property
    def vanishes(self) -> bool:
        """Whether d is 0, up to rounding, even where D is not small.

        A small ratio d / D is not enough: where densities have hardly any curvature in their
        parameters a bound of order 2 can have a constant as small as 1e-11.
        """
        wide = [rung for rung in self.rungs if rung.loss >= WIDE]
        return bool(wide) and not any(rung.resolved for rung in wide)

    @property
    def exponent(self) -> float:
        """Slope r of ``log d`` against ``log D``; inf where d vanishes, NaN without two radii."""
        if self.vanishes:
            return math.inf
        x, y = self._logs()
        return float(np.polyfit(x, y, 1)[0]) if x.size > 1 else math.nan

    @property
    def residual(self) -> float:
        """Largest deviation of ``log d`` from the fitted line; NaN where d vanishes."""
        x, y = self._logs()
        if self.vanishes or x.size < 2:
            return math.nan
        return float(np.max(np.abs(y - np.polyval(np.polyfit(x, y, 1), x))))

    @property
    def local_exponents(self) -> FloatArray:
        """Slopes between neighbouring radii, NaN where d is not resolved."""
        rungs = self.rungs
        slopes = [
            math.log(one.distance / two.distance) / math.log(one.loss / two.loss)
            if one.resolved and two.resolved
            else math.nan
            for one, two in itertools.pairwise(rungs)
        ]
        return np.array(slopes)

    @property
    def ratios(self) -> FloatArray:
        """``d / D`` at each radius."""
        return np.array([rung.ratio for rung in self.rungs])

    @property
    def verdict(self) -> str:
        """What the radii say about ``d >~ D``.

        ``"zero"``: measures with D > 0, not small, have the truth's density, to rounding: the bound
        fails;
        ``"falls"``: the ratio d / D goes to 0, the last local exponents are 1.3 at least;
        ``"bounded"``: it does not, they are 1.1 at most; ``"undecided"`` otherwise.
        """
        if not self.rungs:
            return "undecided"
        if self.vanishes:
            return "zero"
        local = self.local_exponents
        last = local[np.isfinite(local)][-2:]
        if last.size and np.all(last >= _FALLING):
            return "falls"
        if last.size and np.all(last <= _BOUNDED):
            return "bounded"
        return "undecided"

    def rounding_error(self, digits: int = 50) -> float:
        """Rounding error of the last resolved distance, relative; NaN if none is resolved.

        The distance at the same nodes is computed again from the densities themselves, in
        arithmetic of many digits (needs mpmath).

        Parameters
        ----------
        digits : int
            Decimal digits.
        """
        resolved = [rung for rung in self.rungs if rung.resolved]
        if not resolved:
            return math.nan
        fast, exact = resolved[-1].exactly(digits)
        return abs(fast / exact - 1.0) if exact > 0.0 else math.nan

    @property
    def powers(self) -> dict[str, float]:
        """How each deviation of the worst directions scales: its slope against D.

        Deviations that vanish, up to rounding, at some radius are left out.
        """
        out = {}
        x = np.log([rung.loss for rung in self.rungs])
        for name in self.rungs[-1].moves if self.rungs else ():
            sizes = np.array([rung.moves.get(name, 0.0) for rung in self.rungs])
            if np.all(sizes > 1e-12) and len(self.rungs) > 1:
                out[name] = float(np.polyfit(x, np.log(sizes), 1)[0])
        return out

    @property
    def worst_direction(self) -> str:
        """The largest deviations at the smallest radius, with the powers of D they follow."""
        if not self.rungs:
            return ""
        last, powers = self.rungs[-1], self.powers
        largest = max(last.moves.values(), default=0.0)
        moves = sorted(
            ((size, name) for name, size in last.moves.items() if size > 1e-3 * largest),
            reverse=True,
        )
        return "; ".join(
            f"{name} {size:.2g}" + (f" ~ D^{powers[name]:.2f}" if name in powers else "")
            for size, name in moves[:6]
        )

    def __str__(self) -> str:
        """The verdict, the radii and the worst deviations, on 80 columns."""
        gate, expert = self.family.gate.name, self.family.expert.name
        told = {
            "zero": "d is 0 at deviations that are not small: the bound fails",
            "falls": "d / D goes to 0: the bound fails",
            "bounded": "d / D stays away from 0: nothing against the bound was found",
            "undecided": "undecided",
        }
        lines = [
            f"{self.family.likelihood.name} {expert} experts under the {gate} gate:"
            f" {self.truth_family.n_experts} true atoms, {self.family.n_experts} fitted",
            f"loss D: {self.loss}",
            f"{self.verdict}: {told[self.verdict]}",
            f"d ~ D^{self.exponent:.2f}" if math.isfinite(self.exponent) else "d = 0",
            "",
            self.table(),
        ]
        if self.worst_direction:
            lines += ["", "largest deviations at the smallest radius:"]
            lines += [f"  {part.strip()}" for part in self.worst_direction.split(";")]
        return "\n".join(lines)

    __repr__ = __str__

    def table(self) -> str:
        """The radii as lines of text, with what was found at each."""
        head = f"{'D':>10} {'d':>10} {'d / D':>10} {'local r':>8} {'error':>8}  near, pinned"
        local = [math.nan, *self.local_exponents][: len(self.rungs)]
        lines = [
            f"{rung.loss:10.3e} {rung.distance:10.3e} {rung.ratio:10.3e} {r:8.3f} {rung.error:8.0e}"
            f"  {rung.reference}, {rung.pinned}{'' if rung.converged else ' (not settled)'}"
            for rung, r in zip(self.rungs, local, strict=True)
        ]
        return "\n".join([head, *lines])
