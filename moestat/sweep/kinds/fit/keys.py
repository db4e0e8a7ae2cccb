"""Keys of a spec of fits; tables of truths hold the blocks of their family besides."""

from __future__ import annotations

from moestat.metrics.distances import DISTANCES
from moestat.sweep.spec.keys import HEAD, Key, Keys

_GRID = "a list, or { start, stop, num } with spacing log, the default, or linear"

_ESTIMATE = Key(
    "estimate",
    "string",
    "Which maximum over-specified fits look for, where starts are not named: the highest in the"
    " box, by default, or the one near the truth.",
    choices=("maximum", "near-truth"),
)

TOP = (
    *HEAD,
    _ESTIMATE,
    Key("target_slope_halfwidth", "number", "Replicates are added until slopes are so sure."),
    Key("max_replicates", "integer", "Where adding ends; goes with the key before.", False, 1),
    Key("n", "array object", f"Sample sizes: {_GRID}.", True),
    Key(
        "design", "object", "Inputs: distribution, uniform by default, and its options.", default={}
    ),
    Key(
        "distances",
        "array",
        f"Distances of densities: some of {', '.join(DISTANCES)}; all by default.",
    ),
    Key(
        "truth", "object", "Tables [truth.NAME], the distributions that data are drawn from.", True
    ),
    Key("curve", "array", "Tables [[curve]], the families fitted to them.", True),
)
TRUTH = (
    Key(
        "likelihood",
        "string object",
        "A likelihood, by its name or as a table with options; multinomial by default.",
        default="multinomial",
    ),
    Key("gate", "string object", "A gate, by its name or as a table with options.", True),
    Key("expert", "string object", "An expert, likewise; linear by default.", default="linear"),
    Key("n_features", "integer", "Number of inputs; 1 by default.", False, 1, 1_000, default=1),
    Key("n_classes", "integer", "Number of classes; 2 by default.", False, 2, 1_000, default=2),
    Key("bounds", "object", "Block = [low, high]: bounds of fits, not of data.", default={}),
    Key("noise", "number", "Variance around a regression function, and only there."),
)
CURVE = (
    Key("name", "string", "Unique name.", True),
    Key("truth", "string", "Name of the truth that the data come from.", True),
    Key("n_experts", "integer", "Experts of the fit, at least the truth's.", True, 1, 1_000),
    Key("loss", "string object", "A Voronoi loss.", True),
    Key("also", "array", "Further losses of the same fits.", default=[]),
    Key("gate", "string object", "Gate of the fit; the truth's by default."),
    Key("target", "string", "Truth that losses compare with, if it is another one."),
    Key("solver", "object", "A solver with its options."),
    _ESTIMATE,
    Key("starts", "object", "How many starts of which rule, or given ones."),
    Key("n", "array object", "Sample sizes of this curve alone, as at the top."),
    Key(
        "require_certificate",
        "boolean",
        "Whether only certified fits enter the rate.",
        default=True,
    ),
    Key("theory", "number", "Slope that a theorem states; at most 0."),
    Key("alternatives", "array", "Slopes that theory is told from; the theorems' by default."),
    Key("published", "number", "Slope that a paper reports; shown only."),
    Key("panel", "string", "Curves of one panel share axes.", default=""),
    Key("note", "string", "What a reader should know.", default=""),
)
KEYS = Keys("a fit", {"": TOP, "truth": TRUTH, "curve": CURVE})
