"""What `medexam compare` does: find runs, compare them, and show, send and judge what was found."""

from collections.abc import Callable, Sequence
from functools import partial

import typer

from medexam.cli.flags.compare import CompareSettings, SectionSettings, WaySettings
from medexam.cli.flags.result_files import ImportSettings
from medexam.cli.result_files import replace_files
from medexam.cli.views.output import print_json, write_file
from medexam.cli.views.runs import print_notice, read_current
from medexam.experiments.compare.equal_runs import describe_unequal
from medexam.experiments.compare.further import find_further
from medexam.experiments.compare.languages import compare_run_languages
from medexam.experiments.compare.margins import NonInferiority, parse_gate
from medexam.experiments.compare.ranking import mixed_notes
from medexam.experiments.compare.result import Comparison
from medexam.experiments.compare.runs import compare_runs, find_compared
from medexam.experiments.compare.section import Finder
from medexam.experiments.entry.terminal import Terminal
from medexam.experiments.report.comparison_tables import comparison_latex, paired_report
from medexam.experiments.report.language_tables import languages_latex, languages_report
from medexam.experiments.report.run_blocks import comparison_blocks, language_blocks
from medexam.experiments.report.shown import Block, print_blocks
from medexam.experiments.store.paths import default_runs_dir
from medexam.experiments.store.run_folder import RunFolder

GATE_FAILED = 1
"""Exit code of a comparison whose gate did not pass."""


def compare_stored(
    importing: ImportSettings,
    way: WaySettings,
    sections: SectionSettings,
    settings: CompareSettings,
) -> None:
    """Compare runs with the first; show, send and judge what differs."""
    gates = [] if settings.fail_if is None else [parse_gate(settings.fail_if)]
    finders = [*find_further(**vars(sections)), *gates]
    root = settings.runs_dir or default_runs_dir()
    paths = replace_files(settings.runs, importing, root) if settings.runs else [root]
    if settings.baseline is not None:
        baseline_path, *_ = replace_files([settings.baseline], importing, root)
        paths = [baseline_path, *(path for path in paths if path.resolve() != baseline_path.resolve())]
    folders = find_compared(paths)
    if settings.rescore:
        read_current(folders, rescore=True)
    comparison, report, blocks, in_latex = _find(folders, way, finders)
    if settings.markdown is not None:
        write_file(report(), settings.markdown)
    if settings.latex is not None:
        write_file(in_latex(), settings.latex, "--latex")
    if settings.as_json:
        print_json(comparison.document())
    else:
        print_blocks(Terminal(), blocks())
    for line in comparison.corrected:
        print_notice(line)
    warnings = dict.fromkeys(warning for run in comparison.runs for warning in run.warnings)
    own = [
        f"{', '.join(run.title for run in comparison.runs if warning in run.warnings)}: {warning}"
        for warning in warnings
    ]
    for note in (*own, *mixed_notes(comparison.runs), *describe_unequal(comparison.runs)):
        print_notice(f"warning: {note}")
    if gates and not _passes(comparison):
        raise typer.Exit(GATE_FAILED)


def _passes(comparison: Comparison) -> bool:
    """Return whether every run passes, and say why."""
    (tests,) = (section for section in comparison.sections if isinstance(section, NonInferiority))
    passed = [tests.passes(position) for position in range(len(tests.tests))]
    for each, sentence in zip(passed, tests.sentences(comparison.names), strict=True):
        print_notice(f"{'passed' if each else 'FAILED'}: {sentence}")
    return all(passed)


def _find(
    folders: Sequence[RunFolder], way: WaySettings, finders: Sequence[Finder]
) -> tuple[Comparison, Callable[[], str], Callable[[], list[Block]], Callable[[], str]]:
    """Return what was found, and what makes of it Markdown, what the terminal shows, and LaTeX."""
    if way.languages:
        by_language = compare_run_languages(folders)
        return (
            by_language,
            partial(languages_report, by_language),
            partial(language_blocks, by_language),
            partial(languages_latex, by_language),
        )
    comparison = compare_runs(folders, finders, way.reading)
    return (
        comparison,
        partial(paired_report, comparison),
        partial(comparison_blocks, comparison),
        partial(comparison_latex, comparison),
    )
