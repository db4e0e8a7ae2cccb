"""Questions that make further fits."""
