"""Reaching a model: the engines, and one way to build them.

A name is loaded when it is first used: engines need DSPy, and starting a server does not.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
