from .layout import QuestionText as QuestionText
from .scores import BertScore as BertScore
from .scores import score_bleu as score_bleu
from .selecting import select as select
from .validity import TranslationCandidate as TranslationCandidate
from .validity import TranslationFault as TranslationFault
from .validity import clean_reply as clean_reply
from .validity import judge_text as judge_text
