"""Attention velocity fields."""
