"""`medexam data variants`: CasiMedicos' questions with spans, posed in four ways, as files to fine-tune on."""

import json
from pathlib import Path
from typing import Annotated, cast

import typer

from medexam.cli import JsonOption, PathOption, print_json, print_notice, write_file
from medexam.errors import SpecError
from medexam.questions import Language
from medexam_companions.casimedicos.posing import pose_spans

SHOWN = 5
"""Ids that a notice names."""


def variants(
    spans: Annotated[
        Path, typer.Argument(metavar="SPANS", help="A file in SQuAD's form, such as of HiTZ/casimedicos-squad.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where CQ#E.json and the three others go.")],
    language: Annotated[str, typer.Option("--language")] = "es",
    path: PathOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the four variants of CasiMedicos' questions with spans as SQuAD files.

    For example:
        medexam data variants es_train_casimedicos_squad.json --out train
    """
    posed = pose_spans(spans, cast(Language, language), path)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError(f"--out {out}: {error}; choose another folder") from None
    files = {name: out / f"{name}.json" for name in posed.documents}
    for name, document in posed.documents.items():
        write_file(json.dumps(document, ensure_ascii=False, indent=1) + "\n", files[name], "--out")
    if posed.unplaced:
        names = ", ".join(posed.unplaced[:SHOWN]) + (" ..." if len(posed.unplaced) > SHOWN else "")
        print_notice(f"left out {len(posed.unplaced)} whose spans are in no explanation: {names}")
    if as_json:
        names_written = {name: str(file) for name, file in files.items()}
        print_json({"files": names_written, "questions": posed.count, "unplaced": list(posed.unplaced)})
        return
    for written in files.values():
        typer.echo(f"{written}: {posed.count:,} questions")
