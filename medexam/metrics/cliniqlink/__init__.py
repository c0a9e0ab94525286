"""The scorer of the ClinIQLink 2025 shared task: seven formats, the released code's rules and the paper's."""

from medexam.metrics.cliniqlink.items import Format, Item, Malformed, reference_texts
from medexam.metrics.cliniqlink.profiles import PAPER, PUBLISHED, Profile
from medexam.metrics.cliniqlink.scores import ClinIQLinkScores, FormatScores
from medexam.metrics.cliniqlink.scoring import score_cliniqlink
from medexam.metrics.cliniqlink.semantic import Baseline, Similarity, TextEncoder
from medexam.metrics.cliniqlink.texts import Reply

__all__ = [
    "PAPER",
    "PUBLISHED",
    "Baseline",
    "ClinIQLinkScores",
    "Format",
    "FormatScores",
    "Item",
    "Malformed",
    "Profile",
    "Reply",
    "Similarity",
    "TextEncoder",
    "reference_texts",
    "score_cliniqlink",
]
