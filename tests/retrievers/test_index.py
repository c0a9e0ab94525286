"""Index folders: building that survives being stopped, and folders that must not be believed."""

import hashlib
import json
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from medexam.errors import IndexBuildError, IndexStaleError
from medexam.retrievers import build_index, open_index, plan_retriever
from medexam.specs import RetrieverSpec
from retrievers.random_vectors import BLOCK, CORPUS, COUNT, HashEncoder, corpus_of

DATA = "data-00003-of-00004.arrow"


def test_the_manifest_names_corpus_encoder_and_the_hash_of_each_file(built: Path) -> None:
    said = json.loads((built / "manifest.json").read_text())
    assert said["sha256"] == {name: hashlib.sha256((built / name).read_bytes()).hexdigest() for name in said["sha256"]}
    assert (said["corpus"]["fingerprint"], said["corpus"]["count"]) == (CORPUS.fingerprint, COUNT)
    assert (said["encoder"]["label"], said["factory"]) == ("hash", None)
    files = sorted(path.name for path in built.iterdir() if path.name != ".lock")
    assert files == sorted(["manifest.json", *said["sha256"]])


class _Stop(Exception):
    pass


def _stop_at(limit: int) -> Callable[[int], None]:
    def progress(done: int) -> None:
        if done >= limit:
            raise _Stop

    return progress


def test_a_stopped_build_goes_on(tmp_path: Path, built: Path) -> None:
    with pytest.raises(_Stop):
        build_index(CORPUS, HashEncoder(), tmp_path, progress=_stop_at(2 * BLOCK + 1))
    with pytest.raises(IndexStaleError, match=rf"unfinished, {2 * BLOCK} of {COUNT} passages"):
        open_index(tmp_path)
    with pytest.raises(IndexBuildError, match="revision 1, not 2"):
        build_index(CORPUS, HashEncoder(revision="2"), tmp_path)
    again, done = HashEncoder(), []
    build_index(CORPUS, again, tmp_path, progress=done.append)
    assert again.encoded == COUNT - 2 * BLOCK
    assert (done[0], done[-1]) == (2 * BLOCK, COUNT)
    assert _contents(tmp_path) == _contents(built)
    assert open_index(tmp_path).manifest.digest == open_index(built).manifest.digest


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


def test_parts_that_nothing_vouches_for_are_encoded_again(tmp_path: Path, built: Path) -> None:
    with pytest.raises(_Stop):
        build_index(CORPUS, HashEncoder(), tmp_path, progress=_stop_at(2 * BLOCK + 1))
    (tmp_path / "manifest.json").unlink()
    (tmp_path / DATA).write_bytes(b"of another index")
    again = HashEncoder()
    build_index(CORPUS, again, tmp_path)
    assert again.encoded == COUNT
    assert _contents(tmp_path) == _contents(built)


def test_a_finished_index_is_kept_and_overwritten_by_no_other(built: Path) -> None:
    encoder, done = HashEncoder(), []
    build_index(CORPUS, encoder, built, progress=done.append)
    assert (encoder.encoded, done) == (0, [COUNT])
    with pytest.raises(IndexBuildError, match="was begun for corpus numbers"):
        build_index(corpus_of(5, "others"), HashEncoder(), built)
    with pytest.raises(IndexBuildError, match="revision 1, not 2"):
        build_index(CORPUS, HashEncoder(revision="2"), built)


@pytest.mark.parametrize(
    ("dimension", "factory", "parameters", "message"),
    [
        (16, "Magic3", "", "makes no index 'Magic3' .*could not parse"),
        (16, "IVF4,PQ5", "", "16 dimensions .*multiple of the number of subquantizers.*or none for exact search"),
        (16, "HNSW32", "nprobe=3", "makes no index 'HNSW32' of 16 dimensions under 'nprobe=3'"),
    ],
)
def test_what_cannot_be_built_is_said_before_anything_is_encoded(
    tmp_path, dimension, factory, parameters, message
) -> None:
    encoder = HashEncoder(dimension)
    with pytest.raises(IndexBuildError, match=message):
        build_index(CORPUS, encoder, tmp_path, factory, parameters)
    assert encoder.encoded == 0


def test_too_few_passages_for_an_approximate_index_cost_no_encoding(tmp_path: Path, built: Path) -> None:
    encoder = HashEncoder()
    with pytest.raises(IndexBuildError, match=f"cannot be trained on {COUNT} passages .*clusters"):
        build_index(CORPUS, encoder, tmp_path, "IVF4096,Flat")
    build_index(CORPUS, encoder, tmp_path)
    assert encoder.encoded == COUNT
    assert open_index(tmp_path).manifest.digest == open_index(built).manifest.digest


def test_a_full_disk_is_one_line_and_keeps_what_is_done(tmp_path: Path) -> None:
    corpus = corpus_of(6 * BLOCK)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(count: int) -> None:
        if count > 3 * BLOCK:
            resource.setrlimit(resource.RLIMIT_FSIZE, (BLOCK * 64 * 4, hard))

    try:
        with pytest.raises(IndexBuildError, match="the encoded passages are kept"):
            build_index(corpus, HashEncoder(64), tmp_path, progress=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    again = HashEncoder(64)
    build_index(corpus, again, tmp_path)
    assert again.encoded == 3 * BLOCK
    assert open_index(tmp_path, corpus.fingerprint, again).search(["x"], 1)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with pytest.raises(IndexBuildError, match="another process"):
        build_index(CORPUS, HashEncoder(), tmp_path, progress=lambda _: build_index(CORPUS, HashEncoder(), tmp_path))


def test_an_index_of_another_corpus_or_encoder_is_refused(built: Path, tmp_path: Path) -> None:
    with pytest.raises(IndexStaleError, match="holds no index"):
        open_index(tmp_path)
    with pytest.raises(IndexStaleError, match="built for corpus numbers with fingerprint"):
        open_index(built, "0" * 64)
    for encoder, difference in [
        (HashEncoder(revision="2"), "revision 1, not 2"),
        (HashEncoder(dimension=8), "dimension 16, not 8"),
    ]:
        with pytest.raises(IndexStaleError, match=difference):
            open_index(built, encoder=encoder)


def test_a_damaged_manifest_is_refused(tmp_path: Path, built: Path) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "copy"))
    said = json.loads((folder / "manifest.json").read_text())
    for text, complaint in [
        ("{", "cannot be read"),
        (json.dumps({**said, "schema": 5}), "its schema is 5, .*medexam index build"),
        (json.dumps({**said, "factory": 1}), "cannot be read"),
    ]:
        (folder / "manifest.json").write_text(text)
        with pytest.raises(IndexStaleError, match=complaint):
            open_index(folder)


@pytest.mark.parametrize("name", [DATA, "state.json", "structure.faiss"])
def test_a_file_changed_in_place_cut_or_gone_is_refused(tmp_path: Path, built: Path, name: str) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "copy"))
    build_index(CORPUS, HashEncoder(), folder, "HNSW32")
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    for reads in (
        open_index,
        lambda place: plan_retriever(RetrieverSpec(kind="dense", index=place)),
        lambda place: build_index(CORPUS, HashEncoder(), place, "HNSW32"),
    ):
        with pytest.raises(IndexStaleError, match=f"copy: {name} was changed after "):
            reads(folder)
    (folder / name).write_bytes(whole[:-1])
    with pytest.raises(IndexStaleError, match=f"copy: {name} was changed after "):
        open_index(folder)
    (folder / name).unlink()
    with pytest.raises(IndexStaleError, match=f"{name}: it cannot be read"):
        open_index(folder)
    (folder / name).write_bytes(whole)
    open_index(folder)
