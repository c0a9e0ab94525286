"""What a program answered: core fields and, one file a kind, the evidence beside them; floor 0."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
