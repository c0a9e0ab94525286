"""Passages in, ranked hits out: floor 2. `building` opens the retriever of a spec; each method has a module."""

from medexam.retrievers.base import Hit, Passage, Retriever

__all__ = ["Hit", "Passage", "Retriever"]
