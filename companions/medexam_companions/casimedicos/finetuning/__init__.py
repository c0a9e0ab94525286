"""`medexam finetune`: encoders learn to find spans; folders come out that a span reader loads."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
