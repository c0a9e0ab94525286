"""Stored runs in the layouts of the papers, beside their figures and the human baseline."""
