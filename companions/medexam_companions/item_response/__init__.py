"""Many runs among each other: their strengths, the questions that tell them apart, and those that stand for all."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
