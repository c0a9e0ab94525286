from .measures.items import PAPER as PAPER
from .measures.items import PUBLISHED as PUBLISHED
from .measures.items import Format as Format
from .measures.items import ScoringItem as ScoringItem
from .measures.scoring import score_cliniqlink as score_cliniqlink
from .measures.semantic import compare_texts as compare_texts
from .measures.task_metrics import score_cliniqlink_run as score_cliniqlink_run
