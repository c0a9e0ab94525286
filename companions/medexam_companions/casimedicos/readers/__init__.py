"""Models that read passages: where a span answers a question, and whether a sentence entails a hypothesis.

They know passages as texts only, and nothing of exams.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
