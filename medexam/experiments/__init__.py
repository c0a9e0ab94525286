"""From a spec to answered, scored and tracked runs: floor 4."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
