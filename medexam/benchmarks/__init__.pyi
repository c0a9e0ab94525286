from .base import Benchmark as Benchmark
from .paired import TableRun as TableRun
from .registry import find_benchmark as find_benchmark
