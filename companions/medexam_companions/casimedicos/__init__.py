"""CasiMedicos-Arg: explained exam questions, as an exam and as extraction."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
