"""Start rules from their table in a spec; a new rule has a line here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moestat.base.door import door
from moestat.base.registry import UnknownNameError
from moestat.base.types import FloatArray
from moestat.base.validate import positive_int, unknown
from moestat.estimation.rules import MOST_FITS
from moestat.estimation.starts.clusters import ClusterStarts
from moestat.estimation.starts.given import GivenStarts, MeasureStarts, TruthStarts
from moestat.estimation.starts.noise import RandomStarts, SplitStarts
from moestat.estimation.starts.scale import StartRule
from moestat.model.family import Family


@door()
def make_starts(
    options: Mapping[str, Any],
    truth_family: Family | None = None,
    truth: FloatArray | None = None,
    fitted: Family | None = None,
    more: Sequence[str] = (),
) -> list[StartRule]:
    """Start rules from their table in a spec.

    Parameters
    ----------
    options : mapping
        Counts per rule, ``{"truth": 3, "measure": 3, "random": 2, "split": 1, "cluster": 2}``,
        and ``"noise"`` and ``"decay"`` of the truth-centred ones, "truth" and "measure", each a
        number or a table by block.  A list of noises asks for as many starts at each of them.
        ``"given"`` is a list of tables with the values of every block, one start each.
    truth_family, truth : Family and ndarray of shape (P*,), optional
        Needed by truth-centred starts.
    fitted : Family, optional
        The family that is fitted: needed by given starts, and by noise by block; rules that it
        does not have are then refused.
    more : sequence of str
        Names of rules that the caller knows besides, for the message on an unknown one.

    Returns
    -------
    list of StartRule
        In the order given, truth, measure, split, cluster, random; rules with count 0 are left
        out.

    Raises
    ------
    ValueError
        If a key or block is unknown, a count negative, no start remains, the truth is missing, or
        the fitted family does not have a rule.

    Examples
    --------
    >>> [rule.name for rule in make_starts({"random": 2, "split": 1})]
    ['split', 'random']
    >>> from moestat import family
    >>> F = family("multinomial", gate="softmax", n_experts=1, n_classes=2)
    >>> rules = make_starts({"truth": 2, "noise": [0.1, 1.0]}, F, [0.0, 0.0, 1.0, -2.0])
    >>> [(rule.name, rule.count, rule.noise) for rule in rules]
    [('truth', 2, 0.1), ('truth', 2, 1.0)]
    >>> [rule.name for rule in make_starts({"given": [F.unpack([0, 0, 1, -2])]}, fitted=F)]
    ['given']
    """
    centred: dict[str, type[TruthStarts]] = {"truth": TruthStarts, "measure": MeasureStarts}
    others: dict[str, type] = {
        "split": SplitStarts,
        "cluster": ClusterStarts,
        "random": RandomStarts,
    }
    known = (*centred, *others, "noise", "decay", "given")
    for key in options:
        if key not in known:
            raise UnknownNameError(unknown("start rule", key, [*known, *more]))
    counts = {key: options.get(key, 0) for key in (*centred, *others)}
    for key, count in counts.items():
        positive_int(f"starts: {key}", count, 0, MOST_FITS)
    if not any(counts.values()) and "given" not in options:
        raise ValueError(f"starts must ask for at least one start, got {dict(options)}")
    around = any(counts[key] for key in centred)
    for key in ("noise", "decay"):
        if key in options and not around:
            raise ValueError(
                f"starts: {key} belongs to truth-centred starts, but truth and measure are 0"
            )
    rules: list[StartRule] = []
    if "given" in options:
        rules.append(GivenStarts(_given(options["given"], fitted)))
    for key, rule in centred.items():
        if counts[key]:
            decay = options.get("decay", TruthStarts.decay)
            for noise in _distances(options.get("noise", TruthStarts.noise)):
                start = rule(*_known(truth_family, truth), counts[key], noise, decay)
                if fitted is not None:
                    start.check_blocks(fitted)
                rules.append(start)
    rules += [rule(counts[key]) for key, rule in others.items() if counts[key]]
    for rule in rules:
        if fitted is not None and isinstance(rule, ClusterStarts):
            rule.check_family(fitted)
    return rules


def _known(family: Family | None, truth: FloatArray | None) -> tuple[Family, FloatArray]:
    """The truth that starts lie around."""
    if family is None or truth is None:
        raise ValueError("starts: truth-centred starts need a truth")
    return family, truth


def _given(tables: Any, fitted: Family | None) -> list[FloatArray]:
    """Starting values from tables of blocks."""
    if fitted is None:
        raise ValueError("starts: given starts need the fitted family")
    listed = isinstance(tables, (list, tuple)) and tables
    if not listed or not all(isinstance(table, Mapping) for table in tables):
        raise ValueError("starts: given must be a list of one or more tables of blocks")
    return [fitted.pack(table) for table in tables]


def _distances(noise: Any) -> list[Any]:
    """One noise or a list of them; what each of them is, the rules check."""
    if not isinstance(noise, (list, tuple)):
        return [noise]
    if not noise:
        raise ValueError("starts: noise must be a number >= 0 or a list of them, got an empty list")
    return list(noise)
