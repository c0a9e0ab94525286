"""Results of other harnesses as runs, and runs as the files of other harnesses."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
