from .entailment import load_entailment_reader as load_entailment_reader
from .loading import load_reader as load_reader
from .spans import SpanReader as SpanReader
from .spans import load_span_reader as load_span_reader
