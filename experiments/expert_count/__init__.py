"""On the impact of the number of experts."""
