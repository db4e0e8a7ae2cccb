"""Sigmoid self-attention as a mixture of experts."""
