from .projection import LEAST as LEAST
from .projection import fit_projection as fit_projection
