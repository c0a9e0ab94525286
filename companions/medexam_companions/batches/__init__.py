"""Batches that are answered later, at a lower price or at full speed of a GPU."""
