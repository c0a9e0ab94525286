"""Paired statistics of runs on the same questions."""
