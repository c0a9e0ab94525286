"""`medexam compare`: paired statistics of stored runs on the same questions, without asking a model."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from medexam.cli.imports import ImportSettings, replace_files
from medexam.cli.options import BaselineOption, JsonOption, RunsDirOption, TrustOption, settings_as_flags
from medexam.cli.views.output import print_json, write_file
from medexam.errors import SpecError
from medexam.settings import Setting

if TYPE_CHECKING:
    from medexam.experiments.compare.gate import Gate
    from medexam.experiments.compare.result import Comparison
    from medexam.experiments.report.shown import Block
    from medexam.experiments.store.run_folder import RunFolder
    from medexam.specs.programs.ensembles import Combine

GATE_FAILED = 1
"""Exit code of a comparison whose gate did not pass."""
RunsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN RUN...",
        help="The baseline, then what to compare with it: run folders, folders of runs, ids in the runs directory, or "
        "other harnesses' files of results, as `medexam import` reads them.",
    ),
]


@dataclass(frozen=True)
class GateSettings:
    """What a comparison in continuous integration fails at, and where that is written."""

    fail_if: Annotated[
        str | None, Setting("Exit 1 unless every run is shown to lose less than that.", metavar="worse:POINTS")
    ] = None
    junit: Annotated[Path | None, Setting("Write what --fail-if found as JUnit XML.", metavar="FILE")] = None


@settings_as_flags
def compare(
    runs: RunsArgument,
    importing: ImportSettings,
    gating: GateSettings,
    baseline: BaselineOption = None,
    as_json: JsonOption = False,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the comparison as Markdown.")] = None,
    languages: Annotated[
        bool, typer.Option("--languages", help="Two runs in two languages: right in both, in one, in neither.")
    ] = False,
    ensemble: Annotated[
        Literal["vote", "mean_probability"] | None,
        typer.Option(help="Compare what the runs would answer together: the baseline is their ensemble."),
    ] = None,
    track: Annotated[bool, typer.Option("--track", help="Send the comparison to MLflow.")] = False,
    tracking_uri: Annotated[
        str | None,
        typer.Option(help="MLflow store or server, with --track; by default the store beside the first run."),
    ] = None,
    runs_dir: RunsDirOption = None,
    trust: TrustOption = False,  # noqa: ARG001 - its callback has done it
) -> None:
    """Compare stored runs with the first one on the questions that all have scored; asks no model."""
    from medexam.experiments.compare.ranking import mixed_notes
    from medexam.experiments.compare.runs import find_compared
    from medexam.experiments.report.shown import print_blocks
    from medexam.experiments.store.paths import default_runs_dir
    from medexam.experiments.store.stored_run import reading_warnings

    if ensemble is not None and (languages or track or tracking_uri is not None):
        raise SpecError(
            "--ensemble compares runs as they are and stores nothing: leave --languages and --track out, or run a spec "
            "with program.kind=ensemble to keep and track it"
        )
    gate = _read_gate(gating.fail_if, gating.junit)
    paths = replace_files(runs, importing, where := runs_dir or default_runs_dir())
    if baseline is not None:
        first, *_ = replace_files([baseline], importing, where)
        paths = [first, *(path for path in paths if path.resolve() != first.resolve())]
    folders = find_compared(paths)
    for warning in reading_warnings(folders):
        sys.stderr.write(f"medexam: warning: {warning}\n")
    found, report, blocks = _find(folders, ensemble, languages=languages)
    if markdown is not None:
        write_file(report(), markdown)
    if as_json:
        print_json(found.document())
    else:
        from medexam.cli.terminal import Terminal

        print_blocks(Terminal(), blocks())
    for line in found.corrected:
        sys.stderr.write(f"medexam: {line}\n")
    for note in mixed_notes(found.runs):
        sys.stderr.write(f"medexam: warning: {note}\n")
    if track or tracking_uri is not None:
        from medexam.experiments.track.comparisons import track_comparison
        from medexam.experiments.track.store import default_tracking_uri

        uri = tracking_uri or default_tracking_uri(runs_dir or folders[0].path.resolve().parent)
        mlflow_run_id = track_comparison(found, tracking_uri=uri)
        sys.stderr.write(f"the comparison is MLflow run {mlflow_run_id}, sent to {uri}\n")
    if gate is not None and not _passes(gate, found, gating.junit):
        raise typer.Exit(GATE_FAILED)


def _read_gate(fail_if: str | None, junit: Path | None) -> "Gate | None":
    from medexam.experiments.compare.gate import Gate

    if fail_if is None and junit is not None:
        raise SpecError("--junit writes what --fail-if finds: give --fail-if worse:POINTS with it")
    return None if fail_if is None else Gate.parse(fail_if)


def _passes(gate: "Gate", found: "Comparison", junit: Path | None) -> bool:
    """Whether every run passes; says why, and writes it to the file `junit`."""
    from medexam.experiments.compare.gate import render_junit

    checked = gate.check(found)
    sys.stderr.writelines(f"medexam: {'passed' if one.passed else 'FAILED'}: {one.said}\n" for one in checked)
    if junit is not None:
        write_file(render_junit(checked, found.names[0]), junit, "--junit")
    return all(one.passed for one in checked)


def _find(
    folders: "Sequence[RunFolder]", ensemble: "Combine | None", *, languages: bool
) -> "tuple[Comparison, Callable[[], str], Callable[[], list[Block]]]":
    """What was found, what writes it as Markdown, and what is shown of it on the terminal."""
    from medexam.experiments.report.run_blocks import comparison_blocks, consistency_blocks

    if languages:
        from medexam.experiments.compare.languages import check_consistency
        from medexam.experiments.report.language_tables import consistency_report

        pair = check_consistency(folders)
        return pair, partial(consistency_report, pair), partial(consistency_blocks, pair)
    from medexam.experiments.compare.ensembles import compare_ensemble
    from medexam.experiments.compare.runs import compare_runs
    from medexam.experiments.report.comparison_tables import paired_report

    found = compare_runs(folders) if ensemble is None else compare_ensemble(folders, ensemble)
    return found, partial(paired_report, found), partial(comparison_blocks, found)
