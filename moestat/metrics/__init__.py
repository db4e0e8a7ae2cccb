"""How far estimates are from a truth: Voronoi losses, distances of densities, information."""
