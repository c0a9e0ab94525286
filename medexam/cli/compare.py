"""`medexam compare`: paired statistics of stored runs on the same questions, without asking a model."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from medexam.cli.help.completion import complete_run
from medexam.cli.options import BaselineOption, JsonOption, LatexOption, RunsDirOption, TrustOption, settings_as_flags
from medexam.cli.result_files import ImportSettings, replace_files
from medexam.cli.views.output import check_endings
from medexam.errors import SpecError
from medexam.experiments.store.paths import default_runs_dir
from medexam.settings import Setting

if TYPE_CHECKING:
    from medexam.experiments.compare.gate import Gate

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
    latex: LatexOption = None,
    runs_dir: RunsDirOption = None,
    trust: TrustOption = False,  # noqa: ARG001 - its callback has done it
) -> None:
    """Compare stored runs with the first one on the questions that all have scored; asks no model."""
    from medexam.experiments.compare.further import find_further
    from medexam.experiments.compare.runs import find_compared

    _check(way, gating, sections, tracking)
    check_endings({"--markdown": markdown, "--latex": latex})
    gate = _read_gate(gating.fail_if, gating.junit)
    finders = [*find_further(**vars(sections)), *([gate.find] if gate is not None else [])]
    root = runs_dir or default_runs_dir()
    paths = replace_files(runs, importing, root) if runs else [root]
    if baseline is not None:
        baseline_path, *_ = replace_files([baseline], importing, root)
        paths = [baseline_path, *(path for path in paths if path.resolve() != baseline_path.resolve())]
    folders = find_compared(paths)
    from medexam.cli.actions.compare import compare_stored

    judged = None if gate is None else gating
    compare_stored(folders, finders, way, tracking, judged, (markdown, latex), runs_dir, as_json=as_json)


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


def _read_gate(fail_if: str | None, junit: Path | None) -> "Gate | None":
    from medexam.experiments.compare.gate import Gate

    if fail_if is None and junit is not None:
        raise SpecError("--junit writes what --fail-if finds: give --fail-if worse:POINTS with it")
    return None if fail_if is None else Gate.parse(fail_if)
