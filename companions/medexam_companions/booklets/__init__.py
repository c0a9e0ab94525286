"""Exam booklets as the Ministry publishes them, made into tables of exams."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
