"""What is asked and how it is scored: one `Benchmark` for each data set; floor 3."""

from medexam.benchmarks.base import Benchmark
from medexam.benchmarks.paired import PairedRuns, TableRun
from medexam.benchmarks.registry import find_benchmark, find_stored_benchmark
from medexam.metrics import ScoredRun

__all__ = ["Benchmark", "PairedRuns", "ScoredRun", "TableRun", "find_benchmark", "find_stored_benchmark"]
