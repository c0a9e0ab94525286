"""What `medexam index build` does: encode a corpus in this process or on a cluster, with a bar."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import typer

from medexam.cli.flags.index import BuildSettings
from medexam.cli.options import INCOMPLETE
from medexam.experiments.entry.bars import EncodingProgress, open_bars
from medexam.experiments.run.ray import encode_on_ray, open_cluster
from medexam.files import cache_dir
from medexam.retrievers.building import usual_index
from medexam.retrievers.corpora import Corpus, load_corpus
from medexam.retrievers.encoders import Encoder, build_encoder, find_encoder
from medexam.retrievers.index import IndexManifest, build_index, read_manifest, read_progress
from medexam.text import count_of


def encode_corpus(settings: BuildSettings, *, as_json: bool) -> None:
    """Encode a corpus into an index; Ctrl-C keeps what is done, and the same command continues."""
    revision = find_encoder(settings.encoder, settings.revision).revision
    corpus = load_corpus(
        settings.corpus,
        skip_bad=settings.skip_bad,
        chunk_tokens=settings.chunk_tokens,
        chunk_overlap=settings.chunk_overlap,
    )
    if corpus.skipped:
        sys.stderr.write(f"medexam: left out of {corpus.source}: {count_of(corpus.skipped, 'row')} without a passage\n")
    sys.stderr.write(f"Loading {settings.encoder} ...\n")
    encoder = build_encoder(settings.encoder, revision, settings.device, settings.dtype)
    folder = settings.out or usual_index(corpus, encoder, cache_dir())
    with _builder(settings) as builder:
        build = partial(builder, factory=settings.factory, parameters=settings.parameters)
        manifest = _build(corpus, encoder, folder, build)
    _print_manifest(manifest, folder, as_json=as_json)


@contextmanager
def _builder(settings: BuildSettings) -> Iterator[Callable[..., IndexManifest]]:
    """Open what encodes: this process, or the workers of a cluster, which is open meanwhile."""
    if settings.executor == "ray":
        with open_cluster(settings.ray_address) as ray:
            yield partial(build_index, encode=partial(encode_on_ray, ray, settings.device))
    else:
        yield build_index


def _build(corpus: Corpus, encoder: Encoder, out: Path, build: Callable[..., IndexManifest]) -> IndexManifest:
    """Build with a bar on standard error; an interruption says how far it came and exits with code 3."""
    try:
        with open_bars() as bars:
            progress = EncodingProgress(bars, f"{corpus.name}, {encoder.record.label}", corpus.count)
            return build(corpus, encoder, out, progress=progress)
    except KeyboardInterrupt:
        state = read_progress(out)
        count = state.count_encoded(out) if state is not None else 0
        sys.stderr.write(
            f"medexam: interrupted: {count:,} of {corpus.count:,} passages are encoded and kept in {out}; "
            "the same command continues from there\n"
        )
        raise typer.Exit(INCOMPLETE) from None


def print_index(folder: Path, *, as_json: bool) -> None:
    """Print what the index in a folder holds."""
    _print_manifest(read_manifest(folder), folder, as_json=as_json)


def _print_manifest(manifest: IndexManifest, folder: Path, *, as_json: bool) -> None:
    """Print what an index holds, line by line or as JSON."""
    if as_json:
        typer.echo(manifest.model_dump_json(indent=2, by_alias=True))
        return
    for name, value in _lines(manifest, folder).items():
        typer.echo(f"{name:<10} {value}")


def _lines(manifest: IndexManifest, folder: Path) -> dict[str, Any]:
    corpus, encoder = manifest.corpus, manifest.encoder
    size = sum((folder / name).stat().st_size for name in manifest.sha256)
    omissions = f", {corpus.skipped:,} rows left out" if corpus.skipped else ""
    if corpus.chunk_tokens is not None:
        omissions += f", in chunks of {corpus.chunk_tokens} tokens that overlap by {corpus.chunk_overlap}"
    lines = {
        "index": f"{folder}, {size / 1e6:,.1f} MB",
        "corpus": f"{corpus.name}, {corpus.count:,} passages from {corpus.source}{omissions}",
        "licence": corpus.licence or "not stated",
        "encoder": f"{encoder.label} {encoder.revision or ''} {encoder.precision}, {encoder.dimension} dimensions",
        "tokens": f"{encoder.query_tokens} of a query, {encoder.passage_tokens} of a passage",
        "search": f"{manifest.factory or 'exact'} {manifest.parameters}".rstrip(),
        "digest": manifest.digest[:16],
        "files": f"{len(manifest.sha256)}, all unchanged since the build, by SHA-256",
    }
    if manifest.recall is not None:
        lines["recall"] = f"{manifest.recall:.1%} of the ten best passages of exact search"
    return lines
