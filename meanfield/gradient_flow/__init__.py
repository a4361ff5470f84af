"""Energies, the metrics that make attention their gradient flow, and where convexity fails."""
