"""What the kinds of sweeps without rates share."""
