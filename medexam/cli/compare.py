"""`medexam compare`: paired statistics of stored runs on the same questions, without asking a model."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.imports import ImportSettings, replace_files
from medexam.cli.options import BaselineOption, JsonOption, RunsDirOption, TrustOption, settings_as_flags
from medexam.cli.views.output import print_json, write_file
from medexam.cli.views.runs import print_notice
from medexam.errors import SpecError
from medexam.settings import Setting
from medexam.text import hide_address

if TYPE_CHECKING:
    from medexam.experiments.compare.gate import Gate
    from medexam.experiments.compare.result import Comparison
    from medexam.experiments.compare.section import Finder
    from medexam.experiments.report.shown import Block
    from medexam.experiments.store.run_folder import RunFolder

GATE_FAILED = 1
"""Exit code of a comparison whose gate did not pass."""
RunsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[RUN RUN...]",
        autocompletion=complete_run,
        help="The baseline, then what to compare with it: run folders, folders of runs, ids in the runs directory, or "
        "other harnesses' files of results, as `medexam import` reads them; all runs there by default.",
    ),
]


@dataclass(frozen=True)
class GateSettings:
    """What a comparison in continuous integration fails at, and where that is written."""

    fail_if: Annotated[
        str | None, Setting("Exit 1 unless every run is shown to lose less than that.", metavar="worse:POINTS")
    ] = None
    junit: Annotated[Path | None, Setting("Write what --fail-if found as JUnit XML.", metavar="FILE")] = None


@dataclass(frozen=True)
class WaySettings:
    """How the runs are compared, if not as usual."""

    languages: Annotated[bool, Setting("Two runs in two languages: right in both, in one, in neither.")] = False
    ensemble: Annotated[
        Literal["vote", "mean_probability"] | None,
        Setting("Compare what the runs would answer together: the baseline is their ensemble."),
    ] = None
    reading: Annotated[
        Literal["strict", "lenient"] | None,
        Setting("Read the replies of all runs so; by default each run's as it is scored."),
    ] = None


@dataclass(frozen=True)
class TrackSettings:
    """Where the comparison is sent."""

    track: Annotated[bool, Setting("Send the comparison to MLflow.")] = False
    tracking_uri: Annotated[
        str | None, Setting("MLflow store or server, with --track; by default the store beside the first run.")
    ] = None

    @property
    def sends(self) -> bool:
        """Whether it is sent at all."""
        return self.track or self.tracking_uri is not None


@dataclass(frozen=True)
class SectionSettings:
    """What else is found."""

    equivalent_within: Annotated[
        float | None,
        Setting("Test whether each run differs from the baseline by less than that, either way.", metavar="POINTS"),
    ] = None
    strengths: Annotated[bool, Setting("Three runs or more: their order, and which are not separable.")] = False
    item_response: Annotated[
        bool, Setting("Three runs or more: which questions are hard, useless or may have a wrong key.")
    ] = False
    subset: Annotated[
        int | None, Setting("Four runs or more: choose N questions that stand for all, with their error.", metavar="N")
    ] = None
    cutoff: Annotated[
        str | None,
        Setting("Accuracy on exams before and after that date, against the baseline's.", metavar="YEAR[-MONTH]"),
    ] = None
    overlap: Annotated[
        str | None,
        Setting("Accuracy on questions that share words with that corpus, and on the others.", metavar="CORPUS"),
    ] = None
    overlap_words: Annotated[
        int | None, Setting("With --overlap: words in a row that are shared; 13 by default.", metavar="N", min=3)
    ] = None
    protocol: Annotated[bool, Setting("Show where the protocols of the runs differ.")] = False


@settings_as_flags
def compare(
    importing: ImportSettings,
    gating: GateSettings,
    way: WaySettings,
    sections: SectionSettings,
    tracking: TrackSettings,
    runs: RunsArgument = None,
    baseline: BaselineOption = None,
    as_json: JsonOption = False,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the comparison as Markdown.")] = None,
    runs_dir: RunsDirOption = None,
    trust: TrustOption = False,  # noqa: ARG001 - its callback has done it
) -> None:
    """Compare stored runs with the first one on the questions that all have scored; asks no model."""
    from medexam.experiments.compare.further import find_further
    from medexam.experiments.compare.ranking import mixed_notes
    from medexam.experiments.compare.runs import find_compared
    from medexam.experiments.report.shown import print_blocks
    from medexam.experiments.score.readings import reading_warnings
    from medexam.experiments.store.paths import default_runs_dir

    _check(way, gating, sections, tracking)
    gate = _read_gate(gating.fail_if, gating.junit)
    finders = [*find_further(**vars(sections)), *([gate.find] if gate is not None else [])]
    root = runs_dir or default_runs_dir()
    paths = replace_files(runs, importing, root) if runs else [root]
    if baseline is not None:
        baseline_path, *_ = replace_files([baseline], importing, root)
        paths = [baseline_path, *(path for path in paths if path.resolve() != baseline_path.resolve())]
    folders = find_compared(paths)
    for warning in reading_warnings(folders):
        print_notice(f"warning: {warning}")
    comparison, report, blocks = _find(folders, way, finders)
    if markdown is not None:
        write_file(report(), markdown)
    if as_json:
        print_json(comparison.document())
    else:
        from medexam.cli.terminal import Terminal

        print_blocks(Terminal(), blocks())
    for line in comparison.corrected:
        print_notice(line)
    for note in mixed_notes(comparison.runs):
        print_notice(f"warning: {note}")
    if tracking.sends:
        _send(comparison, tracking.tracking_uri, runs_dir or folders[0].path.resolve().parent)
    if gate is not None and not _passes(comparison, gating.junit):
        raise typer.Exit(GATE_FAILED)


def _check(way: WaySettings, gating: GateSettings, sections: SectionSettings, tracking: TrackSettings) -> None:
    """Raise `SpecError` for options that do not go together."""
    if way.languages and (gating.fail_if is not None or sections != SectionSettings()):
        raise SpecError(
            "--languages shows which questions are right in which language: leave out --fail-if, --equivalent-within, "
            "--strengths, --item-response, --cutoff and --overlap, or compare the runs without --languages"
        )
    if way.reading is not None and (way.languages or way.ensemble is not None):
        raise SpecError("--reading goes with neither --languages nor --ensemble: leave it out")
    if way.ensemble is not None and (way.languages or tracking.sends):
        raise SpecError(
            "--ensemble compares runs as they are and stores nothing: leave --languages and --track out, or run a spec "
            "with program.kind=ensemble to keep and track it"
        )


def _send(comparison: "Comparison", uri: str | None, runs_dir: Path) -> None:
    """Send the comparison to MLflow; by default to the store in `runs_dir`."""
    from medexam.experiments.track.comparisons import track_comparison
    from medexam.experiments.track.store import default_tracking_uri

    uri = uri or default_tracking_uri(runs_dir)
    mlflow_run_id = track_comparison(comparison, tracking_uri=uri)
    sys.stderr.write(f"the comparison is MLflow run {mlflow_run_id}, sent to {hide_address(uri)}\n")


def _read_gate(fail_if: str | None, junit: Path | None) -> "Gate | None":
    from medexam.experiments.compare.gate import Gate

    if fail_if is None and junit is not None:
        raise SpecError("--junit writes what --fail-if finds: give --fail-if worse:POINTS with it")
    return None if fail_if is None else Gate.parse(fail_if)


def _passes(comparison: "Comparison", junit: Path | None) -> bool:
    """Return whether every run passes; say why, and write it to the file `junit`."""
    from medexam.experiments.compare.gate import check_gate, render_junit
    from medexam.experiments.compare.margins import NonInferiority

    (margin,) = (section for section in comparison.sections if isinstance(section, NonInferiority))
    verdicts = check_gate(comparison.names, margin)
    sys.stderr.writelines(
        f"medexam: {'passed' if verdict.passed else 'FAILED'}: {verdict.sentence}\n" for verdict in verdicts
    )
    if junit is not None:
        write_file(render_junit(verdicts, comparison.names[0]), junit, "--junit")
    return all(verdict.passed for verdict in verdicts)


def _find(
    folders: "Sequence[RunFolder]", way: WaySettings, finders: "Sequence[Finder]"
) -> "tuple[Comparison, Callable[[], str], Callable[[], list[Block]]]":
    """Return what was found, what writes it as Markdown, and what is shown of it on the terminal."""
    from medexam.experiments.report.run_blocks import comparison_blocks, consistency_blocks

    if way.languages:
        from medexam.experiments.compare.languages import check_consistency
        from medexam.experiments.report.language_tables import consistency_report

        pair = check_consistency(folders)
        return pair, partial(consistency_report, pair), partial(consistency_blocks, pair)
    from medexam.experiments.report.comparison_tables import paired_report

    if way.ensemble is None:
        from medexam.experiments.compare.runs import compare_runs

        comparison = compare_runs(folders, finders, way.reading)
    else:
        from medexam.experiments.compare.ensembles import compare_ensemble

        comparison = compare_ensemble(folders, way.ensemble, finders)
    return comparison, partial(paired_report, comparison), partial(comparison_blocks, comparison)
