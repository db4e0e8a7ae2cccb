"""Warnings: one class per kind, so that each can be filtered by itself."""

from __future__ import annotations

__all__ = ["ConstantColumnWarning", "MoEWarning"]


class MoEWarning(UserWarning):
    """What a user should know about a fit that was made all the same."""


class ConstantColumnWarning(MoEWarning):
    """An input is the same for all samples: its coefficients are 0, its effect in intercepts."""
