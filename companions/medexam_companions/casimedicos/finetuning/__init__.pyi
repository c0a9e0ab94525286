from .windows import make_lessons as make_lessons
from .windows import read_span_file as read_span_file
