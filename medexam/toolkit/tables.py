"""Tables and the numbers in them."""

from medexam.tables import NONE, Captioned, Table, coefficient, decimal, percent
from medexam.text import count_of, nearest

__all__ = ["NONE", "Captioned", "Table", "coefficient", "count_of", "decimal", "nearest", "percent"]
