"""A command: its options and settings, what it prints and where."""

from medexam.cli.options import JsonOption, RunsDirOption
from medexam.cli.terminal import Terminal
from medexam.cli.views.output import print_json, write_file
from medexam.cli.views.runs import print_tables
from medexam.experiments.store.paths import default_runs_dir, run_paths

__all__ = [
    "JsonOption",
    "RunsDirOption",
    "Terminal",
    "default_runs_dir",
    "print_json",
    "print_tables",
    "run_paths",
    "write_file",
]
