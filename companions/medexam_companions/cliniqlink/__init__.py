"""ClinIQLink as its organisers run it: containers, submissions and a board."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
