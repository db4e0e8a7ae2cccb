"""Row programmes of networks, and the counters that their noise comes from."""
