"""Build vector indexes for dense retrieval, and say what one holds."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from medexam.cli.options import JsonOption
from medexam.cli.output import print_document
from medexam.text import print_notice

app = typer.Typer(help="Build vector indexes for dense retrieval, and say what one holds.", no_args_is_help=True)


@app.command()
def build(
    corpus: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="A file, folder or hub data set of passages; $MEDEXAM_DATA's by default."),
    ] = None,
    encoder: Annotated[str, typer.Option(help="medcpt, minilm, a folder or a hub id.")] = "medcpt",
    revision: Annotated[str | None, typer.Option(help="Revision of a hub encoder; the newest by default.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The folder of the index, new or unfinished; by default one in the cache, where runs look.",
        ),
    ] = None,
    factory: Annotated[
        str | None,
        typer.Option(help="FAISS's string of an approximate index, such as IVF4096,PQ64; search is exact by default."),
    ] = None,
    parameters: Annotated[str, typer.Option(help="Parameters of that index, such as nprobe=64.")] = "",
    chunk_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Cut longer passages into chunks of N tokens (words and punctuation marks)."),
    ] = None,
    chunk_overlap: Annotated[int, typer.Option(min=0, help="Tokens that neighbouring chunks share.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Encode a corpus into an index; Ctrl-C keeps what is done, and the same command continues.

    For example:
        medexam index build --corpus passages.jsonl.gz --encoder minilm
    """
    for is_wrong, flag, need in (
        (parameters and factory is None, "--parameters", "--factory"),
        (factory and out is None, "--factory", "--out: in the cache, runs look for exact indexes"),
        (chunk_overlap >= (chunk_tokens or 1), "--chunk-overlap", "--chunk-tokens, and must be less than it"),
    ):
        if is_wrong:
            raise typer.BadParameter(f"needs {need}", param_hint=flag)
    from medexam.experiments.entry.progress import Bars
    from medexam.files import cache_dir
    from medexam.retrievers.building import usual_index
    from medexam.retrievers.corpora import load_corpus
    from medexam.retrievers.encoders import build_encoder, find_encoder
    from medexam.retrievers.index import build_index

    commit = find_encoder(encoder, revision).revision
    passages = load_corpus(corpus, chunk_tokens=chunk_tokens, chunk_overlap=chunk_overlap)
    for line in passages.warnings:
        print_notice(f"warning: {line}")
    sys.stderr.write(f"Loading {encoder} ...\n")
    model = build_encoder(encoder, commit)
    folder = out or usual_index(passages, model, cache_dir())
    with Bars() as bars:
        progress = bars.encoding(f"{passages.name}, {model.record.label}", passages.count)
        manifest = build_index(passages, model, folder, progress=progress, factory=factory, parameters=parameters)
    print_document(manifest.model_dump(mode="json", by_alias=True), as_json=as_json)


@app.command()
def info(folder: Annotated[Path, typer.Argument(metavar="DIR")], as_json: JsonOption = False) -> None:
    """Say what an index holds, whose files are unchanged by SHA-256; exit code 2 where it cannot be used.

    For example:
        medexam index info passages-index
    """
    from medexam.retrievers.index import read_manifest

    print_document(read_manifest(folder).model_dump(mode="json", by_alias=True), as_json=as_json)
