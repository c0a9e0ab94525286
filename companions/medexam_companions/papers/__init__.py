"""The tables and figures of papers: declared, made anew by one command, and filled with stored runs."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
