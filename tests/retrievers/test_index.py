"""Index folders: building that survives being stopped, and folders that must not be believed."""

import hashlib
import json
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from medexam.cli import app
from medexam.errors import IndexBuildError, IndexStaleError
from medexam.retrievers import BLOCK, build_index, open_index, read_manifest
from retrievers.random_vectors import CORPUS, COUNT, HashEncoder, corpus_of


def test_the_manifest_says_everything(built: Path) -> None:
    said = json.loads((built / "manifest.json").read_text())
    assert said["schema"] == 3
    assert said["sha256"] == {name: hashlib.sha256((built / name).read_bytes()).hexdigest() for name in said["bytes"]}
    assert said["corpus"] == {
        "name": "numbers",
        "fingerprint": CORPUS.fingerprint,
        "source": "tests",
        "licence": None,
        "count": COUNT,
        "skipped": 0,
        "chunk_tokens": None,
        "chunk_overlap": 0,
    }
    assert said["encoder"]["label"] == "hash"
    assert (said["metric"], said["kind"], said["recall"]) == ("inner_product", "flat", None)
    assert sorted(path.name for path in built.iterdir() if path.name != ".lock") == sorted(
        ["manifest.json", *said["bytes"]]
    )


class _Stop(Exception):
    pass


def _stop_at(limit: int) -> Callable[[int], None]:
    def progress(done: int) -> None:
        if done >= limit:
            raise _Stop

    return progress


DATA = "data-00000-of-00001.arrow"


def test_a_stopped_build_goes_on(tmp_path: Path, built: Path) -> None:
    encoder = HashEncoder()
    with pytest.raises(_Stop):
        build_index(CORPUS, encoder, tmp_path, progress=_stop_at(2 * BLOCK + 1))
    with pytest.raises(IndexStaleError, match=rf"unfinished, {2 * BLOCK} of {COUNT} passages"):
        open_index(tmp_path)
    again, done = HashEncoder(), []
    build_index(CORPUS, again, tmp_path, progress=done.append)
    assert again.encoded == COUNT - 2 * BLOCK
    assert (done[0], done[-1]) == (2 * BLOCK, COUNT)
    for name in (DATA, "state.json", "dataset_info.json"):
        assert (tmp_path / name).read_bytes() == (built / name).read_bytes()
    assert open_index(tmp_path).digest == open_index(built).digest


def test_rows_that_nothing_vouches_for_are_encoded_again(tmp_path: Path, built: Path) -> None:
    with pytest.raises(_Stop):
        build_index(CORPUS, HashEncoder(), tmp_path, progress=_stop_at(2 * BLOCK + 1))
    draft = tmp_path / f".{DATA}.draft"
    with draft.open("ab") as stream:
        stream.write(b"torn")
    again = HashEncoder()
    shutil.copytree(tmp_path, tmp_path / "short")
    build_index(CORPUS, again, tmp_path)
    assert again.encoded == COUNT - 2 * BLOCK
    assert (tmp_path / DATA).read_bytes() == (built / DATA).read_bytes()
    (tmp_path / "short" / f".{DATA}.draft").write_bytes(draft.name.encode())
    build_index(CORPUS, again, tmp_path / "short")
    assert again.encoded == 2 * COUNT - 2 * BLOCK
    assert (tmp_path / "short" / DATA).read_bytes() == (built / DATA).read_bytes()


def test_a_finished_index_is_kept(built: Path) -> None:
    encoder, done = HashEncoder(), []
    build_index(CORPUS, encoder, built, progress=done.append)
    assert (encoder.encoded, done) == (0, [COUNT])


def test_another_corpus_or_encoder_overwrites_nothing(tmp_path: Path, built: Path) -> None:
    with pytest.raises(IndexBuildError, match="was begun for corpus numbers"):
        build_index(corpus_of(5, "others"), HashEncoder(), built)
    with pytest.raises(IndexBuildError, match="revision 1, not 2"):
        build_index(CORPUS, HashEncoder(revision="2"), built)
    with pytest.raises(_Stop):
        build_index(CORPUS, HashEncoder(), tmp_path, progress=_stop_at(1))
    with pytest.raises(IndexBuildError, match="revision 1, not 2"):
        build_index(CORPUS, HashEncoder(revision="2"), tmp_path)


def test_an_empty_corpus(tmp_path: Path) -> None:
    from medexam.retrievers import Corpus

    with pytest.raises(IndexBuildError, match="no passages"):
        build_index(Corpus("nothing", (), "0", "tests"), HashEncoder(), tmp_path)


def test_a_full_disk_is_one_line_and_keeps_what_is_done(tmp_path: Path, built: Path) -> None:
    corpus = corpus_of(6 * BLOCK)
    row_bytes = 64 * 4
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 * BLOCK * row_bytes, hard))
    try:
        with pytest.raises(IndexBuildError, match="the encoded passages are kept") as caught:
            build_index(corpus, HashEncoder(64), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "File too large" in str(caught.value)
    with pytest.raises(IndexStaleError, match="unfinished"):
        open_index(tmp_path)
    again = HashEncoder(64)
    build_index(corpus, again, tmp_path)
    assert again.encoded == 3 * BLOCK
    assert open_index(tmp_path, corpus.fingerprint, again).search(["x"], 1)


def test_too_little_space_is_said_first(tmp_path: Path) -> None:
    encoder = HashEncoder(10**12)
    with pytest.raises(IndexBuildError, match="GB are free"):
        build_index(CORPUS, encoder, tmp_path)
    assert encoder.encoded == 0


def test_one_process_at_a_time(tmp_path: Path) -> None:
    def again(done: int) -> None:
        build_index(CORPUS, HashEncoder(), tmp_path)

    with pytest.raises(IndexBuildError, match="another process"):
        build_index(CORPUS, HashEncoder(), tmp_path, progress=again)


def test_a_stale_index_is_refused(built: Path) -> None:
    with pytest.raises(IndexStaleError, match="indexes corpus numbers with fingerprint"):
        open_index(built, "0" * 64)
    for encoder, difference in [
        (HashEncoder(revision="2"), "revision 1, not 2"),
        (HashEncoder(dimension=8), "dimension 16, not 8"),
    ]:
        with pytest.raises(IndexStaleError, match=difference):
            open_index(built, encoder=encoder)


@pytest.mark.parametrize("name", [DATA, "state.json", "dataset_info.json"])
def test_a_truncated_index_is_refused(tmp_path: Path, built: Path, name: str) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "copy"))
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-1])
    with pytest.raises(IndexStaleError, match=f"{name} has .* bytes instead of"):
        open_index(folder)
    (folder / name).unlink()
    with pytest.raises(IndexStaleError, match=f"{name} is missing"):
        open_index(folder)


def test_a_damaged_manifest_is_refused(tmp_path: Path, built: Path) -> None:
    with pytest.raises(IndexStaleError, match="holds no index"):
        open_index(tmp_path)
    folder = Path(shutil.copytree(built, tmp_path / "copy"))
    said = json.loads((folder / "manifest.json").read_text())
    for text, complaint in [
        ("{", "cannot be read"),
        (json.dumps({**said, "schema": 2}), "its schema is 2, .*medexam index build"),
        (json.dumps({**said, "kind": "magic"}), "cannot be read"),
        (json.dumps({**said, "corpus": {**said["corpus"], "count": 3}}), r"its manifest says \(3, 16\)"),
    ]:
        (folder / "manifest.json").write_text(text)
        with pytest.raises(IndexStaleError, match=complaint):
            open_index(folder)


def _change_a_byte(file: Path, place: int = -1) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("name", [DATA, "state.json", "dataset_info.json", "structure.faiss"])
def test_a_file_changed_in_place_is_refused(tmp_path: Path, built: Path, name: str) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "copy"))
    build_index(CORPUS, HashEncoder(), folder, "hnsw")
    assert open_index(folder).search_vectors(HashEncoder().encode_queries(["x"]), 1)
    _change_a_byte(folder / name)
    for reads in (open_index, read_manifest, lambda place: build_index(CORPUS, HashEncoder(), place, "hnsw")):
        with pytest.raises(IndexStaleError, match=f"copy: {name} was changed after .*restore it, or name another"):
            reads(folder)
    _change_a_byte(folder / name)
    open_index(folder)


def test_the_digest_is_of_the_ranking_and_not_of_the_place(tmp_path: Path, built: Path) -> None:
    moved = Path(shutil.copytree(built, tmp_path / "elsewhere"))
    assert open_index(moved).digest == open_index(built).digest
    build_index(CORPUS, HashEncoder(revision="2"), tmp_path / "other")
    assert open_index(tmp_path / "other").digest != open_index(built).digest


def test_a_change_of_kind_that_was_stopped_encodes_nothing_again(tmp_path: Path, built: Path) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "copy"))

    class Stopped(HashEncoder):
        def encode_queries(self, texts, progress=None):  # type: ignore[no-untyped-def]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(CORPUS, Stopped(), folder, "hnsw")
    with pytest.raises(IndexStaleError, match=f"unfinished, {COUNT} of {COUNT}"):
        open_index(folder)
    encoder = HashEncoder()
    build_index(CORPUS, encoder, folder)
    assert encoder.encoded == 0
    assert open_index(folder).digest == open_index(built).digest
    assert not (folder / "structure.faiss").exists()


def test_too_small_for_cells(tmp_path: Path) -> None:
    encoder = HashEncoder()
    with pytest.raises(IndexBuildError, match="at least 9,984 passages"):
        build_index(CORPUS, encoder, tmp_path, "ivfpq")
    assert encoder.encoded == 0


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": str(n), "title": "", "content": f"passage {n} of the heart"} for n in range(BLOCK + 20)]
    (tmp_path / "c.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    out = tmp_path / "index"
    encoder = HashEncoder()
    monkeypatch.setattr("medexam.cli.actions.index.build_encoder", lambda *asked: encoder)
    monkeypatch.setattr("medexam.cli.actions.index.find_encoder", lambda *asked: encoder)
    arguments = ["index", "build", "--corpus", str(tmp_path / "c.jsonl"), "--encoder", "hash", "--out", str(out)]
    encode = encoder.encode_passages

    def interrupted(passages, progress=None):  # type: ignore[no-untyped-def]
        if encoder.encoded:
            raise KeyboardInterrupt
        return encode(passages, progress)

    encoder.encode_passages = interrupted  # type: ignore[method-assign]
    stopped = CliRunner().invoke(app, arguments)
    assert stopped.exit_code == 3
    assert f"{BLOCK} of {BLOCK + 20} passages are encoded and kept" in stopped.stderr
    encoder.encode_passages = encode  # type: ignore[method-assign]
    finished = CliRunner().invoke(app, [*arguments, "--json"])
    assert finished.exit_code == 0, finished.stderr
    assert encoder.encoded == BLOCK + 20
    told = CliRunner().invoke(app, ["index", "info", str(out)])
    assert f"{BLOCK + 20} passages" in told.stdout
    assert "files      3, all unchanged since the build, by SHA-256" in told.stdout
    machine = CliRunner().invoke(app, ["index", "info", str(out), "--json"])
    assert json.loads(machine.stdout) == json.loads(finished.stdout)
    assert read_manifest(out).corpus.name == "c"
    refused = CliRunner().invoke(app, [*arguments, "--kind", "magic"])
    assert "'magic' is not one of" in str(refused.exception)
    assert isinstance(CliRunner().invoke(app, ["index", "info", str(tmp_path)]).exception, IndexStaleError)
