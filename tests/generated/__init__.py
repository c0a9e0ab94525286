"""Generated inputs for every boundary: what others write, changed in ways that nobody thought of."""
