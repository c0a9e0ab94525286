from .lessons import is_negated_item as is_negated_item
from .lessons import make_lessons as make_lessons
from .lessons import read_span_file as read_span_file
from .telling_marks import without_marks as without_marks
from .training import mean_scores as mean_scores
