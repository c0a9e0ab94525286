"""Capabilities beside the core: each room stands on `medexam` and `medexam.toolkit` alone, as a plug-in does."""
