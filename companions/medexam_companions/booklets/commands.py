"""`medexam data build`: an exam booklet and its answer key to a data set that every strategy can be run on.

It parses, calls `medexam_companions.booklets` and prints; it knows nothing of PDFs.
"""

from pathlib import Path
from typing import Annotated

import typer

from medexam.cli import JsonOption


def build(
    booklet: Annotated[Path, typer.Option(metavar="PDF", help="The exam as the Ministry publishes it.")],
    key: Annotated[
        list[Path], typer.Option(metavar="CSV|PDF", help="The official answers; may be repeated, then they must agree.")
    ],
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
    formula_reader: Annotated[
        str | None,
        typer.Option(metavar="CMD", help="A command that gets the PNG of a chemical structure and prints its SMILES."),
    ] = None,
    language: Annotated[str, typer.Option(help="The language that the booklet is in.")] = "es",
    year: Annotated[int | None, typer.Option(help="Year of the exam; that in --name by default.")] = None,
    discipline: Annotated[str | None, typer.Option(help="Discipline of the exam; that in --name by default.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Turn an exam booklet and its answer key into a data set, with a report and a page to check it by.

    For example:
        medexam data build --booklet 2020.pdf --key 2020.csv --name biology-2020 --out exam
    """
    from medexam_companions.booklets.actions import build_data_set

    build_data_set(
        booklet,
        tuple(key),
        name,
        out,
        images=images,
        without_images=without_images,
        corrections=corrections,
        formula_reader=formula_reader,
        language=language,
        year=year,
        discipline=discipline,
        as_json=as_json,
    )
