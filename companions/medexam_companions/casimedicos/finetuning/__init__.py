"""`medexam finetune`: an encoder learns to find spans; a folder comes out that a span reader loads."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
