"""Declarative LLM programs for medical exams, built on DSPy."""

import os

import lazy_loader

# DSPy may import litellm, which else fetches two lists from the network.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
os.environ.setdefault("LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS", "True")
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
