"""A command: its options and settings, what it prints and where."""

from medexam.cli.flags.result_files import ImportSettings
from medexam.cli.options import (
    INCOMPLETE,
    FailuresOption,
    JsonOption,
    OverridesOption,
    PathOption,
    RunsDirOption,
    TrackingOption,
    data_read_once,
    refuse,
    refuse_others,
    settings_as_flags,
)
from medexam.cli.settings import Setting, as_words
from medexam.cli.terminal import Terminal
from medexam.cli.views.output import print_by_kind, print_json, send_to_mlflow, write_file
from medexam.cli.views.runs import (
    describe_stop,
    print_lines,
    print_notice,
    print_ranking_notes,
    print_tables,
    read_current,
)
from medexam.experiments.store.paths import default_runs_dir, run_paths

__all__ = [
    "INCOMPLETE",
    "FailuresOption",
    "ImportSettings",
    "JsonOption",
    "OverridesOption",
    "PathOption",
    "RunsDirOption",
    "Setting",
    "Terminal",
    "TrackingOption",
    "as_words",
    "data_read_once",
    "default_runs_dir",
    "describe_stop",
    "print_by_kind",
    "print_json",
    "print_lines",
    "print_notice",
    "print_ranking_notes",
    "print_tables",
    "read_current",
    "refuse",
    "refuse_others",
    "run_paths",
    "send_to_mlflow",
    "settings_as_flags",
    "write_file",
]
