"""Stored runs as the files of other harnesses and of the hub; no model is asked."""
