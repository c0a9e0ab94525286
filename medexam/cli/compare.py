"""`medexam compare`: paired statistics of stored runs on the same questions, without asking a model."""

from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from medexam.cli.options import (
    RUNS,
    BaselineOption,
    JsonOption,
    LatexOption,
    MarkdownOption,
    RescoreOption,
    RunsDirOption,
    settings_as_flags,
)
from medexam.cli.output import print_result, read_current
from medexam.plugins import load_added
from medexam.text import print_notice

GATE_FAILED = 1
"""Exit code of a comparison whose gate did not pass."""


@dataclass(frozen=True)
class CoreSections:
    """What else the core finds."""

    equivalent_within: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS", help="Test whether each run differs from the baseline by less than POINTS, up or down."
        ),
    ] = None
    ensemble: Annotated[
        Literal["vote", "mean_probability"] | None,
        typer.Option(help="Compare each run with what all would answer together."),
    ] = None
    protocol: Annotated[bool, typer.Option("--protocol", help="Show where the protocols of the runs differ.")] = False


if TYPE_CHECKING:
    SectionSettings = CoreSections
else:
    SectionSettings = make_dataclass(
        "SectionSettings", [], bases=(CoreSections, *load_added("medexam.sections").values()), frozen=True
    )
    """What the core finds, and what installed packages add."""


@settings_as_flags
def compare(
    sections: SectionSettings,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN",
            show_default=False,
            help="The baseline, then what to compare with it: run folders, folders of runs, or ids in the runs "
            "directory; all runs there by default.",
        ),
    ] = None,
    baseline: BaselineOption = None,
    reading: Annotated[
        Literal["strict", "lenient"] | None,
        typer.Option(help="How to read the replies of all runs; by default as each run was scored."),
    ] = None,
    fail_if: Annotated[
        str | None,
        typer.Option(metavar="worse:POINTS", help="Exit 1 unless every run is shown to lose fewer than POINTS."),
    ] = None,
    as_json: JsonOption = False,
    markdown: MarkdownOption = None,
    latex: LatexOption = None,
    runs_dir: RunsDirOption = RUNS,
    rescore: RescoreOption = False,
) -> None:
    """Compare stored runs with the first one on the questions that all have scored, without a model.

    For example:
        medexam compare 3c2aae ff221f
        medexam compare base new --fail-if worse:1.0
    """
    from medexam.experiments.compare.further import find_further, judge_gate, parse_gate
    from medexam.experiments.compare.runs import compare_runs, find_compared

    margin = None if fail_if is None else parse_gate(fail_if)
    finders = find_further(**vars(sections))
    folders = find_compared(runs or [runs_dir], runs_dir, baseline)
    if rescore:
        read_current(folders, rescore=True)
    comparison = compare_runs(tuple(folders), tuple(finders), reading)
    print_result(comparison, as_json=as_json, markdown=markdown, latex=latex)
    for warning in dict.fromkeys(warning for run in comparison.runs for warning in run.warnings):
        titles = ", ".join(run.title for run in comparison.runs if warning in run.warnings)
        print_notice(f"warning: {titles}: {warning}")
    if margin is None:
        return
    name, *others = comparison.names
    pairs = zip(comparison.statistics.pairs, others, strict=True)
    verdicts = [judge_gate(pair, margin, other, name) for pair, other in pairs]
    for passed, sentence in verdicts:
        print_notice(f"{'passed' if passed else 'FAILED'}: {sentence}")
    if not all(passed for passed, _ in verdicts):
        raise typer.Exit(GATE_FAILED)
