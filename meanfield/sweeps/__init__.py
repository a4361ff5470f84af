"""Many cases at once, and the files that keep them."""
