"""What `medexam index map` does: place passages and questions, draw them and hand the picture to a run."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from medexam.cli import open_bars, print_json, read_current
from medexam.errors import RunFolderError, SpecError
from medexam.experiments import RunFolder, default_runs_dir, default_tracking_uri, run_paths
from medexam.experiments.track.runs import track
from medexam.files import write_whole
from medexam.retrievers import IndexManifest, read_languages, read_manifest
from medexam.specs import SAMPLED, DatasetSpec, validate
from medexam_companions.corpus_map.drawing import check_place, new_figure, write_map
from medexam_companions.corpus_map.placing import CorpusMap, Watch, make_map

CORPUS_MAP = "map.png"

if TYPE_CHECKING:
    from rich.progress import TaskID

    from medexam.experiments import ExamRun
    from medexam.questions import Language


def place_on_map(
    folder: Path,
    dataset: str | None,
    language: str,
    limit: int | None,
    sample: int,
    seed: int,
    out: Path | None,
    run: Path | None,
    tracking_uri: str | None,
    runs_dir: Path | None,
    *,
    as_json: bool,
) -> None:
    """Draw passages by source and questions by discipline on a UMAP projection."""
    if tracking_uri is not None and run is None:
        raise SpecError("--tracking-uri: the picture is sent to a run's page in MLflow: name the run with --run RUN")
    path = out or folder / CORPUS_MAP
    if path.suffix != ".png":
        raise typer.BadParameter(f"{path} does not end in .png: the map is written as PNG", param_hint="--out")
    spec = validate(DatasetSpec, {"name": dataset or SAMPLED, "language": language, "limit": limit, "seed": seed})
    if runs_dir is not None and run is None:
        raise SpecError("--runs-dir is the folder of --run RUN: give both, or leave it out")
    stored_run = _run(run, runs_dir or default_runs_dir()) if run is not None else None
    _warn_of_language(read_manifest(folder), spec.language)
    figure = new_figure()
    check_place(path)
    with _watching() as watch:
        corpus_map = make_map(folder, spec, sample=sample, seed=seed, watch=watch)
    write_map(figure, corpus_map, path)
    sys.stderr.write(f"wrote {path}\n")
    attachment = _attach(stored_run, path, tracking_uri) if stored_run is not None else None
    _print(corpus_map, path, attachment, as_json)


def _warn_of_language(manifest: IndexManifest, language: "Language") -> None:
    """Tell of questions in a language that the encoder does not read: it places them, and their places mean nothing."""
    languages = read_languages(manifest.encoder.source)
    if languages is not None and language not in languages:
        sys.stderr.write(
            f"medexam: {manifest.encoder.label} reads {', '.join(sorted(languages))} and not {language}, so the "
            "questions' places say little: draw their English translations with --language en, or build an index with "
            "an encoder that reads both\n"
        )


def _run(run: Path, runs_dir: Path) -> "ExamRun":
    """Find the one run that a path or an id names; raises `RunFolderError` if there is none."""
    (path,) = run_paths([run], runs_dir)
    (stored_run,) = read_current([RunFolder(path)])
    if "discipline" not in stored_run.benchmark.facets:
        raise RunFolderError(f"{path} asked no exam, so its questions cannot be drawn: name another run")
    return stored_run


def _attach(run: "ExamRun", picture: Path, tracking_uri: str | None) -> dict[str, str | None]:
    """Copy the picture into a run's folder, and send the run with it to MLflow; return where both are."""
    folder = run.folder.path.resolve()
    copy = folder / CORPUS_MAP
    try:
        if not (copy.exists() and copy.samefile(picture)):
            write_whole(copy, picture.read_bytes())
    except OSError as error:
        raise RunFolderError(f"cannot write {copy}: {error}; name another run with --run") from None
    (sent,) = track([run], tracking_uri=tracking_uri or default_tracking_uri(folder.parent))
    sys.stderr.write(f"wrote {copy}, MLflow run {sent.run_id}\n")
    return {"map": str(copy), "mlflow_run_id": sent.run_id}


@contextmanager
def _watching() -> Iterator[Watch]:
    """Draw a bar for each step on a terminal, and print a line for each elsewhere."""
    tasks: dict[str, TaskID] = {}
    with open_bars() as bars:

        def watch(step: str, count: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=total, note="")
                if not bars.console.is_terminal:
                    sys.stderr.write(f"{step} ...\n")
            bars.update(tasks[step], completed=count)

        yield watch


def _print(corpus_map: CorpusMap, path: Path, attachment: dict[str, str | None] | None, as_json: bool) -> None:
    document: dict[str, Any] = {"map": str(path.resolve()), **corpus_map.document(), "run": attachment}
    if as_json:
        print_json(document)
        return
    passages, questions = document["passages"], document["questions"]
    lines = {
        "map": path,
        "passages": f"{passages['drawn']:,} of {passages['in_index']:,}: {_counts(passages['by_source'])}",
        "questions": f"{questions['drawn']:,} of {corpus_map.exam.name} {corpus_map.exam.language}: "
        f"{_counts(questions['by_discipline'])}",
        "encoder": corpus_map.manifest.encoder.label,
        "trust": f"{corpus_map.trustworthiness:.3f} of 1: how far neighbours on the map are neighbours in the index",
    }
    for name, value in lines.items():
        typer.echo(f"{name:<10} {value}")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())
