"""Servers as jobs of a cluster: the batch script, what each of its nodes does, and what would fail there."""
