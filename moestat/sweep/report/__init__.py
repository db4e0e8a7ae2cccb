"""How a sweep is read."""
