"""`medexam data build`: an exam booklet and its answer key to a data set that every strategy can be run on.

It parses, calls `medexam_companions.booklets` and prints; it knows nothing of PDFs.
"""

from pathlib import Path
from typing import Annotated, cast

import typer

from medexam.cli import JsonOption
from medexam.questions import Language


def build(
    booklet: Annotated[Path, typer.Option(metavar="PDF", help="The exam as the Ministry publishes it.")],
    key: Annotated[Path, typer.Option(metavar="CSV|PDF", help="The official answers.")],
    name: Annotated[str, typer.Option(help="Such as Cuaderno_2020_0_B: year, version, discipline.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder of the data set; it may hold other exams.")],
    images: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The exam's pictures, numbered in their names.")
    ] = None,
    without_images: Annotated[
        bool, typer.Option("--without-images", help="Build questions without the pictures that they are linked to.")
    ] = False,
    corrections: Annotated[
        Path | None, typer.Option(metavar="YAML", help="Corrections by question, each with a reason.")
    ] = None,
    language: Annotated[str, typer.Option(help="The language that the booklet is in.")] = "es",
    as_json: JsonOption = False,
) -> None:
    """Turn an exam booklet and its answer key into a data set, with a report and a page to check it by.

    For example:
        medexam data build --booklet 2020.pdf --key 2020.csv --name Cuaderno_2020_0_B --out exams
    """
    from medexam_companions.booklets.actions import build_data_set
    from medexam_companions.booklets.building import BuildRequest

    request = BuildRequest(
        booklet=booklet,
        key=key,
        name=name,
        language=cast("Language", language),
        images=images,
        without_images=without_images,
        corrections=corrections,
    )
    build_data_set(request, out, as_json=as_json)
