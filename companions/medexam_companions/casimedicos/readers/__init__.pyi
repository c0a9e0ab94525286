from .entailment import EntailmentReader as EntailmentReader
from .loading import load_reader as load_reader
from .spans import SpanReader as SpanReader
