"""Scores of stored runs, without asking a model."""
