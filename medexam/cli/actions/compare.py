"""What `medexam compare` does: find runs, compare them, and show, send and judge what was found."""

import typer

from medexam.cli.flags.compare import CompareSettings, SectionSettings
from medexam.cli.flags.result_files import ImportSettings
from medexam.cli.result_files import replace_files
from medexam.cli.views.output import print_json, write_file
from medexam.cli.views.runs import print_notice, read_current
from medexam.experiments.compare.further import find_further
from medexam.experiments.compare.margins import judge_gate, parse_gate
from medexam.experiments.compare.result import Comparison
from medexam.experiments.compare.runs import compare_runs, find_compared
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.report.comparison_tables import comparison_blocks, comparison_latex, paired_report
from medexam.experiments.report.shown import print_blocks
from medexam.experiments.store.paths import default_runs_dir

GATE_FAILED = 1
"""Exit code of a comparison whose gate did not pass."""


def compare_stored(importing: ImportSettings, sections: SectionSettings, settings: CompareSettings) -> None:
    """Compare runs with the first; show, send and judge what differs."""
    margin = None if settings.fail_if is None else parse_gate(settings.fail_if)
    finders = find_further(**vars(sections))
    root = settings.runs_dir or default_runs_dir()
    paths = replace_files(settings.runs, importing, root) if settings.runs else [root]
    if settings.baseline is not None:
        baseline_path, *_ = replace_files([settings.baseline], importing, root)
        paths = [baseline_path, *(path for path in paths if path.resolve() != baseline_path.resolve())]
    folders = find_compared(paths)
    if settings.rescore:
        read_current(folders, rescore=True)
    comparison = compare_runs(tuple(folders), tuple(finders), settings.reading)
    if settings.markdown is not None:
        write_file(paired_report(comparison), settings.markdown)
    if settings.latex is not None:
        write_file(comparison_latex(comparison), settings.latex, "--latex")
    if settings.as_json:
        print_json(comparison.document())
    else:
        print_blocks(Terminal(), comparison_blocks(comparison))
    for line in comparison.scope.corrected:
        print_notice(line)
    for warning in dict.fromkeys(warning for run in comparison.runs for warning in run.warnings):
        titles = ", ".join(run.title for run in comparison.runs if warning in run.warnings)
        print_notice(f"warning: {titles}: {warning}")
    for note in comparison.doubts:
        print_notice(f"warning: {note}")
    if margin is not None and not _passes(comparison, margin):
        raise typer.Exit(GATE_FAILED)


def _passes(comparison: Comparison, margin: float) -> bool:
    """Return whether every run passes, and say why."""
    baseline, *others = comparison.names
    pairs = zip(comparison.statistics.pairs, others, strict=True)
    verdicts = [judge_gate(pair, margin, name, baseline) for pair, name in pairs]
    for passed, sentence in verdicts:
        print_notice(f"{'passed' if passed else 'FAILED'}: {sentence}")
    return all(passed for passed, _ in verdicts)
