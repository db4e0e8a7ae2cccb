"""Inference after a fit: covariances, tests, intervals, resampling, numbers of experts."""
