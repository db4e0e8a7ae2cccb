"""Kernels: row programmes over blocks of samples and the compiled loops around them."""
