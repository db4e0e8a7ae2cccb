"""Mixtures of experts as models: gates, experts, likelihoods, families, designs, samples."""
