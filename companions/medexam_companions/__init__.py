"""Capabilities beside the core: each room stands on the public names of `medexam` alone, as a plug-in does."""
