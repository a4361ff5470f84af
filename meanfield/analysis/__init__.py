"""Distances, observables and detectors."""
