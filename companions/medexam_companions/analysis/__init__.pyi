from .sequential import SequentialEnding as SequentialEnding
from .sequential import SequentialTest as SequentialTest
from .stopping import StoppingRule as StoppingRule
from .stopping import find_looks as find_looks
