"""A collector under everything at once, for hours: `tests/soak`."""
