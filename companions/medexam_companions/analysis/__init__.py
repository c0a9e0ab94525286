"""How few questions decide a comparison: sequential tests of runs that are asked block by block."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
