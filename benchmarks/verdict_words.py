"""How often each word of a verdict is said of twelve laws with a known rate.

    OPENBLAS_NUM_THREADS=1 python benchmarks/verdict_words.py [--repeats 3000]

A law is a loss at sample sizes n, times noise: lognormal, of one spread or of one that changes with
n, or the square root of a chi-square variable, which is skewed after the logarithm.  A true
statement is "this exponent" where the law is that of the theorem, with or without its logarithm,
"slower" or "faster" where it is not; "too wide" says nothing.  By the 95% interval a false word
should be said of a law at the edge, such as the exact law with its logarithm, in 2.5% of repeats.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from results import markdown

from moestat.rates.rate import fit_rate

Noise = Callable[[np.random.Generator, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Law:
    """A loss with a known rate, the sizes that it is measured at, and what a theorem says of it."""

    name: str
    loss: Callable[[np.ndarray], np.ndarray]
    theory: float
    right: str
    low: float = 1e3
    high: float = 1e6
    sizes: int = 5
    replicates: int = 20
    noise: Noise = lambda rng, n: rng.lognormal(0.0, 0.3, n.size)


def _power(exponent: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda n: n**exponent


def _logarithm(exponent: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda n: (np.log(n) / n) ** -exponent


EXACT = "this exponent"
LAWS = (
    Law("n^-1/2", _power(-1 / 2), -1 / 2, EXACT),
    Law("n^-1/4", _power(-1 / 4), -1 / 4, EXACT),
    Law("(log n / n)^1/2", _logarithm(-1 / 2), -1 / 2, EXACT, 1e3, 1e14, 12, 10),
    Law("(log n / n)^1/2", _logarithm(-1 / 2), -1 / 2, EXACT, 1e3, 1e14, 12, 40),
    Law("(log n / n)^1/2", _logarithm(-1 / 2), -1 / 2, EXACT, 1e3, 1e14, 12, 100),
    Law("(log n / n)^1/2", _logarithm(-1 / 2), -1 / 2, EXACT, 10, 1e5, 5, 40),
    Law("(log n / n)^1/4", _logarithm(-1 / 4), -1 / 4, EXACT, 1e4, 1e14, 11, 20),
    Law(
        "(log n / n)^1/2, noise grows",
        _logarithm(-1 / 2),
        -1 / 2,
        EXACT,
        noise=lambda rng, n: rng.lognormal(0.0, 0.1 * n**0.15),
    ),
    Law(
        "(log n / n)^1/2, skewed noise",
        _logarithm(-1 / 2),
        -1 / 2,
        EXACT,
        noise=lambda rng, n: np.sqrt(rng.chisquare(3, n.size)),
    ),
    Law("n^-1/4 for -1/2", _power(-1 / 4), -1 / 2, "slower"),
    Law("n^-1/8 for -1/4", _power(-1 / 8), -1 / 4, "slower"),
    Law("n^-1/2 for -1/4", _power(-1 / 2), -1 / 4, "faster"),
)


def row_of(law: Law, repeats: int) -> dict[str, object]:
    """The share of each word over the repeats of a law."""
    n = np.repeat(np.geomspace(law.low, law.high, law.sizes), law.replicates)
    words: Counter[str] = Counter()
    for seed in range(repeats):
        noise = law.noise(np.random.default_rng(seed), n)
        words[fit_rate(n, law.loss(n) * noise, theory=law.theory, n_bootstrap=0).bound.word] += 1
    place = f"{law.low:g} to {law.high:g}, {law.sizes} sizes x {law.replicates}"
    shares = {
        word: f"{100 * words[word] / repeats:.1f}%"
        for word in ("slower", EXACT, "too wide", "faster")
    }
    return {"law": law.name, "n": place, "theory": f"{law.theory:g}", "right": law.right, **shares}


def main() -> None:
    """Count, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3000)
    repeats = parser.parse_args().repeats
    table = markdown([row_of(law, repeats) for law in LAWS])
    print(table)
    if repeats >= 3000:
        head = (
            f"# Words of verdicts on laws with a known rate\n\n{repeats:,} repeats of each law.\n"
        )
        path = Path(__file__).with_name("results") / "verdict_words.md"
        path.write_text(f"{head}\n{table}\n", "utf-8")


if __name__ == "__main__":
    main()
