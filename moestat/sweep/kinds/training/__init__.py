"""Sweeps whose cells train layers of experts (`moestat.networks.smoe`)."""
