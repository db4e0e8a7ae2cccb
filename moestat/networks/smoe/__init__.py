"""Sparse mixtures of experts as PyTorch modules, and CompeteSMoE (extra ``torch``).

Import what you need from the modules; nothing outside this folder imports PyTorch.
"""
