"""`medexam index`: encode a corpus for dense retrieval, and say what an index holds.

It parses, calls `medexam.retrievers` and prints; it knows nothing of vectors.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from medexam.cli.index_map import draw
from medexam.cli.options import JsonOption, RayAddressOption, settings_as_flags
from medexam.settings import Setting

if TYPE_CHECKING:
    from medexam.retrievers.index_manifest import IndexManifest

app = typer.Typer(help="Vector indexes for dense retrieval.", no_args_is_help=True)
app.command("map")(draw)


@dataclass(frozen=True)
class BuildSettings:
    """What is encoded, by which encoder, and by whom."""

    corpus: Annotated[
        str | None,
        Setting("A file, folder or hub data set of passages; $MEDEXAM_DATA's by default.", metavar="PATH"),
    ] = None
    encoder: Annotated[str, Setting("medcpt, minilm, a folder or a hub id.")] = "medcpt"
    revision: Annotated[str | None, Setting("Revision of a hub encoder; the newest by default.")] = None
    out: Annotated[
        Path | None,
        Setting("The folder to make, or to go on with; the cache's, where runs look, by default.", metavar="DIR"),
    ] = None
    kind: Annotated[
        Literal["flat", "hnsw", "ivfpq"], Setting("flat is exact; hnsw and ivfpq are for millions of passages.")
    ] = "flat"
    device: Annotated[str, Setting("auto, cpu or cuda.")] = "auto"
    dtype: Annotated[Literal["float32", "bfloat16", "float16"], Setting("The encoder's precision.")] = "float32"
    chunk_tokens: Annotated[
        int | None, Setting("Cut longer passages into chunks of N tokens (words and punctuation marks).", min=1)
    ] = None
    chunk_overlap: Annotated[int, Setting("Tokens that neighbouring chunks share.", min=0)] = 0
    skip_bad: Annotated[bool, Setting("Leave out rows that are not JSON or have no text, and count them.")] = False
    executor: Annotated[
        Literal["local", "ray"],
        Setting("Who encodes: local, this process; ray, the workers of a cluster, into shards."),
    ] = "local"
    shards: Annotated[
        int | None, Setting("ray: folders to encode into; one for each worker by default.", metavar="N", min=1)
    ] = None
    ray_address: RayAddressOption = None

    def __post_init__(self) -> None:
        """Refuse settings that do not go together."""
        if self.executor != "ray" and (self.shards is not None or self.ray_address is not None):
            raise typer.BadParameter("needs --executor ray", param_hint="--shards and --ray-address")
        if self.chunk_overlap >= (self.chunk_tokens or 1):
            raise typer.BadParameter("needs --chunk-tokens, and fewer tokens than that", param_hint="--chunk-overlap")


@app.command()
@settings_as_flags
def build(settings: BuildSettings, as_json: JsonOption = False) -> None:
    """Encode a corpus into an index; Ctrl-C keeps what is done, and the same command continues."""
    from medexam.cli.actions.index import encode_corpus

    encode_corpus(settings, as_json=as_json)


@app.command()
def info(folder: Annotated[Path, typer.Argument(metavar="DIR")], as_json: JsonOption = False) -> None:
    """Say what an index holds; exit code 2 where it cannot be used."""
    from medexam.retrievers.index_manifest import read_manifest

    print_manifest(read_manifest(folder), folder, as_json)


def print_manifest(manifest: "IndexManifest", folder: Path, as_json: bool) -> None:
    """Print what an index holds, line by line or as JSON."""
    if as_json:
        typer.echo(manifest.model_dump_json(indent=2, by_alias=True))
        return
    for name, value in _lines(manifest, folder).items():
        typer.echo(f"{name:<10} {value}")


def _lines(manifest: "IndexManifest", folder: Path) -> dict[str, Any]:
    corpus, encoder = manifest.corpus, manifest.encoder
    settings = ", ".join(f"{name} {value}" for name, value in manifest.parameters.items())
    omissions = f", {corpus.skipped:,} rows left out" if corpus.skipped else ""
    if corpus.chunk_tokens is not None:
        omissions += f", in chunks of {corpus.chunk_tokens} tokens that share {corpus.chunk_overlap}"
    proof = (
        "all as they were built, by SHA-256"
        if manifest.hashed
        else "as they are now: this old index records no SHA-256; the `medexam index build` that made it adds them"
    )
    lines = {
        "index": f"{folder}, {sum(manifest.bytes.values()) / 1e6:,.1f} MB",
        "corpus": f"{corpus.name}, {corpus.count:,} passages from {corpus.source}{omissions}",
        "licence": corpus.licence or "not stated",
        "encoder": f"{encoder.label} {encoder.revision or ''} {encoder.precision}, {encoder.dimension} dimensions",
        "tokens": f"{encoder.query_tokens} of a query, {encoder.passage_tokens} of a passage",
        "kind": f"{manifest.kind} {settings}".rstrip(),
        "digest": manifest.digest[:16],
        "files": f"{len(manifest.sha256)}, {proof}",
    }
    if manifest.recall is not None:
        recall = manifest.recall
        lines["recall"] = f"{recall.value:.1%} of the {recall.at} best of {recall.queries} exhaustive searches"
    return lines
