"""Stored runs on the same questions: pairs, baselines, flips, languages, and which runs may be ranked."""
