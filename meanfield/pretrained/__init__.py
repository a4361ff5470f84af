"""Real weights as heads and trajectories."""
