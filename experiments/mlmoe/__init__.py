"""Multinomial-logistic mixtures of experts with sigmoid gates."""
