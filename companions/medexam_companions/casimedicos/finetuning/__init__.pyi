from .lessons import make_lessons as make_lessons
from .lessons import read_span_file as read_span_file
