"""Translating exams with the engines of this framework: words, asking, choosing and measuring."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
