"""Models, and many questions in flight: engines, messages, replies, the scheduler and what it may spend."""

from medexam.signatures.lenient import read_leniently

__all__ = ["read_leniently"]
