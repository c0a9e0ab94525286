from .meaning import compare_texts as compare_texts
from .scoring import FORMATS as FORMATS
from .scoring import OPEN as OPEN
from .scoring import score_cliniqlink as score_cliniqlink
