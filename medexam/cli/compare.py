"""`medexam compare`: paired statistics of stored runs on the same questions, without asking a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.cli.flags.compare import GateSettings, SectionSettings, TrackSettings, WaySettings
from medexam.cli.help.completion import complete_run
from medexam.cli.options import (
    BaselineOption,
    BibtexOption,
    JsonOption,
    LatexOption,
    RunsDirOption,
    TrustOption,
    settings_as_flags,
)
from medexam.cli.result_files import ImportSettings, replace_files
from medexam.cli.views.output import check_endings, write_bibtex
from medexam.errors import SpecError
from medexam.experiments.store.paths import default_runs_dir

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
    bibtex: BibtexOption = None,
    runs_dir: RunsDirOption = None,
    trust: TrustOption = False,  # noqa: ARG001 - its callback has done it
) -> None:
    """Compare stored runs with the first one on the questions that all have scored; asks no model."""
    from medexam.experiments.compare.further import find_further
    from medexam.experiments.compare.runs import find_compared

    _check(way, gating, sections, tracking)
    check_endings({"--markdown": markdown, "--latex": latex, "--bibtex": bibtex})
    gate = _read_gate(gating.fail_if, gating.junit)
    finders = [*find_further(**vars(sections)), *([gate.find] if gate is not None else [])]
    root = runs_dir or default_runs_dir()
    paths = replace_files(runs, importing, root) if runs else [root]
    if baseline is not None:
        baseline_path, *_ = replace_files([baseline], importing, root)
        paths = [baseline_path, *(path for path in paths if path.resolve() != baseline_path.resolve())]
    folders = find_compared(paths)
    from medexam.cli.actions.compare import compare_stored

    write_bibtex(folders, bibtex)
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
