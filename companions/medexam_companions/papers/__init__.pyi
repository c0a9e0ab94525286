from .maps import LEAST as LEAST
from .maps import fit_projection as fit_projection
from .maps import measure_trust as measure_trust
from .paper import all_papers as all_papers
from .paper_tables import PaperReport as PaperReport
from .tokens import count_tokens as count_tokens
