"""Pages and pictures that read stores of several papers' sweeps."""
