"""A command: its options and settings, what it prints and where."""

from medexam.cli.options import JsonOption, RunsDirOption, settings_as_flags
from medexam.cli.progress.bars import open_bars
from medexam.cli.result_files import ImportedRun, ImportSettings, take_files
from medexam.cli.terminal import Terminal
from medexam.cli.views.output import print_by_kind, print_json, write_file
from medexam.cli.views.runs import print_notice, print_tables, read_current
from medexam.experiments.store.paths import default_runs_dir, run_paths

__all__ = [
    "ImportSettings",
    "ImportedRun",
    "JsonOption",
    "RunsDirOption",
    "Terminal",
    "default_runs_dir",
    "open_bars",
    "print_by_kind",
    "print_json",
    "print_notice",
    "print_tables",
    "read_current",
    "run_paths",
    "settings_as_flags",
    "take_files",
    "write_file",
]
