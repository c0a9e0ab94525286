from .answer_format import parse_answer as parse_answer
from .choices import read_choice as read_choice
from .lenient import read_leniently as read_leniently
from .span_alignment import find_span as find_span
from .thinking import split_thinking as split_thinking
from .word_files import validate_words as validate_words
