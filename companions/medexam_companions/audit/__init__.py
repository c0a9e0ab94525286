"""Having people judge a sample of open answers, and how far automatic measures agree with them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
