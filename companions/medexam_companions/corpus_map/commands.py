"""`medexam index map`: a picture of an index's passages and an exam's questions among them.

It parses; `making` is imported when it is called.
"""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli import JsonOption, RunsDirOption


def draw(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="An index that `medexam index build` made.")],
    dataset: Annotated[
        str | None, typer.Option(help="A data set of exams; by default that of the shipped sample.")
    ] = None,
    language: Annotated[str, typer.Option(help="The questions' language.")] = "en",
    limit: Annotated[
        int | None, typer.Option(min=1, help="How many questions, spread over the exams; all by default.")
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="At most this many passages, drawn at random.")] = 30_000,
    seed: Annotated[int, typer.Option(min=0, help="Draws passages and questions, and fixes the projection.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="The picture; map.png in the index folder by default.")
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Also write it to this run's folder, and to its MLflow run if it has one."),
    ] = None,
    tracking_uri: Annotated[
        str | None,
        typer.Option(help="MLflow store or server of --run; $MLFLOW_TRACKING_URI or the run's own by default."),
    ] = None,
    runs_dir: RunsDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw passages by source and questions by discipline on a UMAP projection.

    For example:
        medexam index map passages-index
    """
    from medexam_companions.corpus_map.making import place_on_map

    place_on_map(folder, dataset, language, limit, sample, seed, out, run, tracking_uri, runs_dir, as_json=as_json)
