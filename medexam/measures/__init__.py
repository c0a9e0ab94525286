"""What is asked and how it is scored: scores, evidence, comparisons, and one `Benchmark` for each data set; floor 3."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
