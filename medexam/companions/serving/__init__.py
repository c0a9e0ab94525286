"""`medexam serve`: vLLM on this machine, as a Slurm job and on each of its nodes, and what runs start themselves."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
