"""A picture of an index: its passages on a plane by source, and an exam's questions among them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
