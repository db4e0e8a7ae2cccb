"""The kinds of layers that the tests of layers take, and their sizes."""

from moestat.networks.smoe import (
    CompeteSMoE,
    CompeteSMoEv1,
    CompetitionMoE,
    CompetitionMoEv1,
    SMoE,
)

D, N, T = 8, 4, 32
"""Width of a row, experts, rows."""

KINDS = {
    "smoe": SMoE,
    "compete": CompeteSMoE,
    "compete-v1": CompeteSMoEv1,
    "competition": CompetitionMoE,
    "competition-v1": CompetitionMoEv1,
}
