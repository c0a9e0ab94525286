"""Batch APIs: a run's requests collected into files, worked off by a provider or by vLLM's `run-batch`, and merged."""
