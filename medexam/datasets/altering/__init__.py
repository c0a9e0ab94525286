"""Questions altered to test whether a model has memorised them: the words that are shown, and the altering itself."""
