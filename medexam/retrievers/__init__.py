"""Passages in, ranked hits out: floor 2. `building` opens the retriever of a spec; each method has a module."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
