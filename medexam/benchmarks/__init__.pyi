from .base import Benchmark as Benchmark
from .choice.comparison import compare_exams as compare_exams
from .registry import find_benchmark as find_benchmark
