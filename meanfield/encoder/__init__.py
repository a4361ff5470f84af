"""A Transformer layer as one splitting step."""
