"""A language whose topic is hidden: what the best predictor loses is known exactly."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from moestat.base.types import FloatArray
from moestat.networks.smoe.training.decoder import LanguageModel
from moestat.networks.smoe.training.settings import Settings
from moestat.networks.smoe.training.tasks.task import Sample, Task

__all__ = ["TopicLanguage", "filtered_loss"]

N_TOKENS, N_TOPICS, SWITCH, CONCENTRATION = 32, 8, 1 / 32, 0.1


class TopicLanguage(Task):
    """Tokens 0..31 by one of 8 Markov chains; which one, the topic, is a Markov chain itself.

    The topic stays with probability 31/32 and is drawn anew, uniformly, otherwise; the next token
    follows the topic's transition matrix, whose rows are Dirichlet(0.1).  The first token and the
    first topic are uniform.  The least loss is that of the exact filter, `filtered_loss`, on the
    very sequences that a model is tested on.
    """

    def __init__(self, settings: Settings, seed: int) -> None:
        super().__init__(settings, seed)
        rows = (N_TOPICS, N_TOKENS)
        self.transitions = self.generator(0).dirichlet(np.full(N_TOKENS, CONCENTRATION), size=rows)

    def model(self) -> nn.Module:
        """A decoder."""
        return LanguageModel(self.settings, N_TOKENS)

    def sequences(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """`n` sequences of one token more than the context."""
        length = self.settings.context + 1
        cumulative = self.transitions.cumsum(-1)
        tokens = np.empty((n, length), np.int64)
        tokens[:, 0] = rng.integers(N_TOKENS, size=n)
        topic = rng.integers(N_TOPICS, size=n)
        for t in range(1, length):
            switch = rng.random(n) < SWITCH
            topic = np.where(switch, rng.integers(N_TOPICS, size=n), topic)
            below = rng.random((n, 1)) >= cumulative[topic, tokens[:, t - 1], :-1]
            tokens[:, t] = below.sum(1)
        return tokens

    def sample(self, n: int, rng: np.random.Generator) -> Sample:
        """See `Task.sample`; only samples of held-out data know their least loss."""
        return self._as_sample(self.sequences(n, rng))

    def batch(self, step: int) -> Sample:
        """See `Task.batch`; a model that is upcycled sees other sequences than before."""
        stream = 4 if self.settings.task == "upcycling" else 1
        return self.sample(self.settings.batch_size, self.generator(stream, step))

    def held_out(self, which: int) -> Sample:
        """See `Task.held_out`."""
        tokens = self.sequences(self.settings.n_test, self.generator(2, which))
        return self._as_sample(tokens, filtered_loss(self.transitions, tokens, SWITCH))

    def _as_sample(self, tokens: np.ndarray, best: float = 0.0) -> Sample:
        ids = torch.from_numpy(tokens)
        return Sample(ids[:, :-1], ids[:, 1:], best)

    def loss(self, answers: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy in nats per token."""
        return functional.cross_entropy(answers.reshape(-1, N_TOKENS), targets.reshape(-1))


def filtered_loss(transitions: FloatArray, tokens: np.ndarray, switch: float) -> float:
    """Loss per token of the predictor that knows the law and not the topic.

    Parameters
    ----------
    transitions : ndarray of shape (M, V, V)
        Transition matrices of the topics.
    tokens : ndarray of shape (n, L)
        Sequences.
    switch : float
        Probability that a topic is drawn anew.

    Returns
    -------
    float
        Mean of ``-log p(x_t | x_1, ..., x_(t-1))`` over t = 2..L, in nats.

    Notes
    -----
    The forward recursion of a hidden Markov model (Baum et al., 1970).

    Examples
    --------
    >>> even = np.full((1, 2, 2), 0.5)
    >>> round(filtered_loss(even, np.array([[0, 1, 1]]), 0.5), 6)
    0.693147
    """
    n, length = tokens.shape
    n_topics = len(transitions)
    belief = np.full((n, n_topics), 1.0 / n_topics)
    total = 0.0
    for t in range(1, length):
        belief = (1.0 - switch) * belief + switch / n_topics
        likelihood = transitions[:, tokens[:, t - 1], tokens[:, t]].T
        joint = belief * likelihood
        predictive = joint.sum(1, keepdims=True)
        total -= np.log(predictive).mean()
        belief = joint / predictive
    return float(total / (length - 1))
