"""Reading passages: the real sample in each format, what is refused and where, and cutting long ones."""

import csv
import gzip
import io
import json
import os
import re
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medexam.errors import DatasetError
from medexam.retrievers import Passage, build_corpus, build_index, load_corpus
from retrievers.random_vectors import HashEncoder

SAMPLE = Path(__file__).parent / "corpus_sample"
THREE = [("1", "Scurvy", "Vitamin C helps."), ("2", "Insulin", 'The "islets"; the pancreas.'), ("3", "Femur", "á")]
FULL_DATA = os.environ.get("MEDEXAM_DATA")


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEDEXAM_DATA", raising=False)


@pytest.fixture
def lines() -> list[str]:
    return gzip.decompress((SAMPLE / "passages.jsonl.gz").read_bytes()).decode().splitlines()


@pytest.fixture
def write(tmp_path):
    def _write(lines: list[str], name: str = "passages.jsonl") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return _write


def test_the_sample_is_read() -> None:
    corpus = load_corpus(SAMPLE)
    assert (corpus.name, len(corpus.passages)) == ("corpus_sample", 200)
    assert {passage.source for passage in corpus.passages} == {"MedQuAD", "PubMedQA"}
    assert all(one.title and one.text == f"{one.title}\n{one.content}" for one in corpus.passages)


def test_every_format_gives_the_same_corpus(lines, write, tmp_path) -> None:
    rows = [json.loads(line) for line in lines]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "all.parquet", row_group_size=64)
    whole = load_corpus(SAMPLE / "passages.jsonl.gz")
    write(lines[:120], "parts/chunk/a.jsonl")
    write(["", *lines[120:], ""], "parts/chunk/b.jsonl")
    write(lines[:3], "parts/.cache/a.jsonl")
    write(["not passages"], "parts/notes.txt")
    (tmp_path / "windows.jsonl").write_bytes("\r\n".join([*lines, ""]).encode())
    plain = (write(lines), str(write(lines)), tmp_path / "windows.jsonl")
    for source in (*plain, tmp_path / "all.parquet", tmp_path / "parts"):
        other = load_corpus(source)
        assert other.passages == whole.passages
        assert other.fingerprint == whole.fingerprint
        assert other.source == str(source)


def test_fingerprint_depends_on_ids_texts_and_order(lines, write) -> None:
    rows = [json.loads(line) for line in lines[:3]]
    assert {load_corpus(write([json.dumps(row) for row in rows])).fingerprint for _ in range(2)} == {
        load_corpus(write(lines[:3], "again/x.jsonl")).fingerprint
    }
    moved = [rows[0] | {"title": rows[0]["title"][:-1], "content": rows[0]["title"][-1] + rows[0]["content"]}]
    variants = [rows, rows[::-1], rows[:2], [rows[0] | {"id": "other"}, *rows[1:]], moved + rows[1:]]
    prints = {load_corpus(write([json.dumps(row) for row in variant])).fingerprint for variant in variants}
    assert len(prints) == len(variants)


@pytest.mark.parametrize(
    ("row", "source"),
    [
        ({"id": "First_Aid_Step1_12", "title": "First_Aid_Step1"}, "First_Aid_Step1"),
        ({"id": "SPACCC_S0004_0", "title": "SPACCC_S0004_0"}, "SPACCC"),
        ({"id": "SPACCC_S0004_0", "source": "spaccc"}, "spaccc"),
        ({"id": "_plain", "source": None}, "my"),
        ({"id": 17}, "my"),
    ],
)
def test_source_of_a_passage(row, source, write) -> None:
    (passage,) = load_corpus(write([json.dumps({"title": None, "content": "Caso."} | row)], "my.jsonl")).passages
    assert (passage.id, passage.title, passage.source) == (str(row["id"]), row.get("title") or "", source)


BAD_LINES = [
    ("{not json", "is not JSON"),
    ("[1]", r"is \[1\], not an object"),
    ("[" * 100_000, "holds lists and objects nested too deep"),
    ('{"title": "t", "content": "c"}', "id is None, not a text"),
    ('{"id": "", "content": "c"}', "id is '', not a text"),
    ('{"id": true, "content": "c"}', "id is True, not a text"),
    ('{"id": "a", "content": " \\n"}', "passage 'a' has no text"),
    ('{"id": "a", "content": ["c"]}', "passage 'a' has no text"),
    ('{"id": "a", "content": "c", "title": 3}', "title of passage 'a' is 3"),
    (f'{{"id": {"9" * 5000}, "content": "c"}}', "is not JSON \\(Exceeds the limit"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD_LINES)
def test_a_bad_line_is_named(bad, reason, lines, write) -> None:
    path = write([*lines[:2], "", bad, lines[2]])
    with pytest.raises(DatasetError, match=rf"{re.escape(str(path))}, line 4: .*{reason}.*take the row out"):
        load_corpus(path)


def test_bytes_that_are_no_utf8_and_bad_rows_of_parquet_are_named(lines, tmp_path) -> None:
    path = tmp_path / "latin.jsonl"
    path.write_bytes(lines[0].encode() + b"\n" + '{"id": "a", "content": "gestión"}'.encode("latin-1"))
    with pytest.raises(DatasetError, match="line 2: is not UTF-8"):
        load_corpus(path)
    rows = [{"id": str(n), "title": "t", "content": "c" if n != 1500 else None} for n in range(1600)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    with pytest.raises(DatasetError, match=r"p\.parquet, row 1501: passage '1500' has no text"):
        load_corpus(tmp_path / "p.parquet")


def test_an_id_that_stands_twice_is_refused_with_both_places(lines, write, tmp_path) -> None:
    write(lines[:5], "d/a.jsonl")
    write(["", lines[9], lines[2]], "d/b.jsonl")
    with pytest.raises(DatasetError, match=r"b\.jsonl, line 3: id '.*' is already in .*a\.jsonl, line 3"):
        load_corpus(tmp_path / "d")


def test_what_is_no_corpus_is_refused(lines, write, tmp_path) -> None:
    (tmp_path / "nothing").mkdir()
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes((SAMPLE / "passages.jsonl.gz").read_bytes()[:20_000])
    (tmp_path / "no.parquet").write_bytes(b"PAR1 and no more")
    pq.write_table(pa.table({"_id": ["a"], "body": ["b"]}), tmp_path / "beir.parquet")
    cases = {
        tmp_path / "nothing": "holds no file of passages",
        write([], "empty.jsonl"): "corpus empty holds no passages: check that",
        cut: r"line \d+ and what follows: cannot be read .*truncated",
        tmp_path / "no.parquet": r"no\.parquet: cannot be read",
        tmp_path / "beir.parquet": "lacks the column content: its columns are _id, body, and a passage has",
        write(lines, "passages.csv"): "lacks the column id and content",
        write(['{"documents": []}'], "docs.json"): "cannot be read .it holds no list of passages",
        tmp_path / "gone.jsonl": "does not exist: correct the path, name a hub data set .* MEDEXAM_DATA",
    }
    for path, message in cases.items():
        with pytest.raises(DatasetError, match=message):
            load_corpus(path)


SHAPES = {
    "medrag.jsonl": [{"id": n, "title": t, "content": c, "contents": f"{t}. {c}"} for n, t, c in THREE],
    "beir.jsonl": [{"_id": n, "title": t, "text": c, "metadata": {}} for n, t, c in THREE],
    "pyserini.jsonl": [{"id": n, "contents": c, "title": t} for n, t, c in THREE],
    "miracl.jsonl": [{"docid": n, "title": t, "text": c} for n, t, c in THREE],
    "trec.jsonl": [{"pid": int(n), "title": t, "passage": c} for n, t, c in THREE],
    "list.json": [{"id": n, "title": t, "text": c} for n, t, c in THREE],
    "psgs.tsv": [["id", "text", "title"], *([n, c, t] for n, t, c in THREE)],
    "psgs.tsv.gz": [["id", "text", "title"], *([n, c, t] for n, t, c in THREE)],
    "wide.csv": [["doc_id", "url", "title", "passage"], *([n, "u", t, c] for n, t, c in THREE)],
}


@pytest.mark.parametrize("name", SHAPES)
def test_the_corpora_of_others_are_read_by_their_own_names(name, tmp_path) -> None:
    path = write_shape(tmp_path / name, SHAPES[name])
    corpus = load_corpus(path)
    assert [(one.id, one.title, one.content) for one in corpus.passages] == THREE
    if name == "beir.jsonl":
        pq.write_table(pa.Table.from_pylist([row | {"metadata": None} for row in SHAPES[name]]), tmp_path / "p.parquet")
        assert load_corpus(tmp_path / "p.parquet").fingerprint == corpus.fingerprint


def write_shape(path: Path, rows) -> Path:
    lines = io.StringIO()
    if ".jsonl" in path.name:
        lines.write("\n".join(map(json.dumps, rows)))
    elif ".json" in path.name:
        json.dump(rows, lines, indent=1)
    else:
        csv.writer(lines, delimiter="\t" if ".tsv" in path.name else ";").writerows(rows)
    content = lines.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def test_rows_of_a_table_that_do_not_fit_its_header_are_named(tmp_path) -> None:
    path = tmp_path / "collection.tsv"
    path.write_text("0\ta\n1\tb\n", encoding="utf-8")
    with pytest.raises(DatasetError, match="lacks the column id and content: its columns are 0, a"):
        load_corpus(path)
    path.write_text("id\ttext\n0\ta\n1\tb\tc\n", encoding="utf-8")
    with pytest.raises(DatasetError, match="line 3: has 3 cells, and the columns are id, text"):
        load_corpus(path)


def test_documents_of_langchain_need_no_id(tmp_path) -> None:
    rows = [
        {"id": None, "page_content": c, "metadata": {"source": "a.pdf", "title": t}, "type": "Document"}
        for _, t, c in THREE
    ]
    passages = load_corpus(write_shape(tmp_path / "docs.jsonl", rows)).passages
    assert [one.id for one in passages] == ["docs-1", "docs-2", "docs-3"]
    assert [(one.title, one.content, one.source) for one in passages] == [(t, c, "a.pdf") for _, t, c in THREE]
    named = [row | {"id": n} for (n, _, _), row in zip(THREE, rows, strict=True)]
    assert [one.id for one in load_corpus(write_shape(tmp_path / "docs.jsonl", named)).passages] == ["1", "2", "3"]


def test_a_folder_of_texts_is_a_corpus(tmp_path) -> None:
    folder = tmp_path / "leaflets_of_2024"
    (folder / "more").mkdir(parents=True)
    (folder / "README.md").write_text("---\nlicense: mit\n---\nAbout these.")
    (folder / "LICENSE.txt").write_text("MIT")
    (folder / "a.txt").write_text("Vitamin C prevents scurvy.\n")
    (folder / "more/b.md").write_text("---\ntags: x\n---\n# The femur #\n\nIt is in the thigh.\n")
    corpus = load_corpus(folder)
    assert [(one.id, one.title, one.content) for one in corpus.passages] == [
        ("a.txt", "a", "Vitamin C prevents scurvy."),
        ("more/b.md", "The femur", "It is in the thigh."),
    ]
    assert {one.source for one in corpus.passages} == {"leaflets_of_2024"}
    (folder / "c.txt").write_bytes("gestión".encode("latin-1"))
    with pytest.raises(DatasetError, match=r"c\.txt: cannot be read .is not UTF-8"):
        load_corpus(folder)
    write_shape(folder / "p.jsonl", SHAPES["beir.jsonl"])
    assert load_corpus(folder).left_out == ("a.txt", "c.txt", "more/b.md")


def test_a_folder_of_several_formats_is_read_whole_and_names_what_is_not(write, tmp_path) -> None:
    rows = {"a.json": '[{"id": 1, "text": "x"}]', "b.jsonl": '{"docid": "2", "text": "x"}', "c.csv": "pid,text\n3,x"}
    others = {"notes.txt": "About it.", "qrels.tsv": "query-id\tcorpus-id\nq\t1", "settings.json": "{}"}
    for name, text in (rows | others).items():
        write([text], f"mixed/{name}")
    corpus = load_corpus(tmp_path / "mixed")
    assert [passage.id for passage in corpus.passages] == ["1", "2", "3"]
    assert corpus.left_out == tuple(others)


def test_without_a_name_the_data_folder_is_read(lines, write, monkeypatch, tmp_path) -> None:
    with pytest.raises(DatasetError, match=r"MEDEXAM_DATA is not set: name a file or folder .* or set MEDEXAM_DATA"):
        load_corpus(None)
    monkeypatch.setenv("MEDEXAM_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match=r"passages\.jsonl\.gz does not exist: name a file or folder"):
        load_corpus(None)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/passages.jsonl.gz").write_bytes((SAMPLE / "passages.jsonl.gz").read_bytes())
    assert load_corpus(None).fingerprint == load_corpus(SAMPLE).fingerprint


def test_a_hub_data_set_is_read_in_all_its_splits(lines, monkeypatch) -> None:
    import datasets

    rows = [{name: value for name, value in json.loads(line).items() if name != "contents"} for line in lines]
    parts = {
        "train": datasets.Dataset.from_list(rows[:150]),
        "test": datasets.Dataset.from_list(rows[150:]),
    }
    asked = []
    monkeypatch.setattr(datasets, "load_dataset", lambda *name: asked.append(name) or datasets.DatasetDict(parts))
    corpus = load_corpus("MedRAG/textbooks")
    load_corpus("wikimedia/wikipedia#20231101.es")
    assert asked == [("MedRAG/textbooks", None), ("wikimedia/wikipedia", "20231101.es")]
    assert corpus.passages == load_corpus(SAMPLE).passages
    assert corpus.name == "MedRAG/textbooks"
    parts["test"] = datasets.Dataset.from_list([rows[0]])
    with pytest.raises(DatasetError, match=r"split test, row 1: .* is already in MedRAG/textbooks, split train, row 1"):
        load_corpus("MedRAG/textbooks")


def test_a_hub_that_cannot_be_reached_is_told(monkeypatch) -> None:
    import datasets

    def _refuse(name: str, _: str | None) -> None:
        raise ConnectionError(f"Couldn't reach {name!r} on the Hub (OfflineModeIsEnabled)")

    monkeypatch.setattr(datasets, "load_dataset", _refuse)
    with pytest.raises(DatasetError, match=r"no path here and cannot be downloaded .*Couldn't reach"):
        load_corpus("MedRAG/textbooks")
    with pytest.raises(DatasetError, match="does not exist"):
        load_corpus("corpus/passages.jsonl")


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


@pytest.mark.parametrize(("size", "overlap"), [(40, 10), (7, 6), (1, 0), (2000, 3)])
def test_chunks_cover_a_passage_with_overlap(size, overlap) -> None:
    whole = load_corpus(SAMPLE)
    chunked = load_corpus(SAMPLE, chunk_tokens=size, chunk_overlap=overlap)
    assert (chunked.name, chunked.source) == (whole.name, whole.source)
    assert (chunked.chunk_tokens, chunked.chunk_overlap) == (size, overlap)
    parts: dict[str, list[Passage]] = {}
    for chunk in chunked.passages:
        parts.setdefault(chunk.id.partition("#")[0], []).append(chunk)
    assert list(parts) == [passage.id for passage in whole.passages]
    for passage in whole.passages:
        words, chunks = _tokens(passage.content), parts[passage.id]
        if len(words) <= size:
            assert chunks == [passage]
            continue
        assert [chunk.id for chunk in chunks] == [f"{passage.id}#{number}" for number in range(len(chunks))]
        assert {(chunk.title, chunk.source) for chunk in chunks} == {(passage.title, passage.source)}
        found = [_tokens(chunk.content) for chunk in chunks]
        assert all(len(chunk) == size for chunk in found[:-1])
        assert overlap < len(found[-1]) <= size
        assert found[0] + [word for chunk in found[1:] for word in chunk[overlap:]] == words
        assert all(chunk.content in passage.content for chunk in chunks)


def test_chunks_make_a_corpus_of_their_own(write) -> None:
    whole = load_corpus(SAMPLE)
    assert load_corpus(SAMPLE, chunk_tokens=60, chunk_overlap=10).fingerprint != whole.fingerprint
    assert load_corpus(SAMPLE, chunk_tokens=100_000).fingerprint == whole.fingerprint
    rows = [{"id": "a", "content": "one two three"}, {"id": "a#1", "content": "four"}]
    with pytest.raises(DatasetError, match=r"line 2: id 'a#1' is already in .*, line 1: give each passage an id"):
        load_corpus(write([json.dumps(row) for row in rows]), chunk_tokens=2)
    with pytest.raises(DatasetError, match="corpus c holds no passages: check that here"):
        build_corpus("c", [], source="here")
    for size, overlap in ((0, 0), (5, 5), (5, -1)):
        with pytest.raises(ValueError, match="the size must be larger than the overlap"):
            load_corpus(SAMPLE, chunk_tokens=size, chunk_overlap=overlap)


def test_a_corpus_that_changes_while_it_is_read(write, tmp_path) -> None:
    corpus = load_corpus(write([json.dumps({"id": "1", "content": "one"})]))
    write([json.dumps({"id": "1", "content": "another"})])
    with pytest.raises(DatasetError, match="was changed while it was read"):
        build_index(corpus, HashEncoder(), tmp_path / "index")


def test_an_index_is_built_of_blocks_and_holds_no_corpus(write, tmp_path) -> None:
    """Half of the memory that the texts alone would take is never in use."""
    count, text = 4000, "passage " * 1000
    path = write([json.dumps({"id": str(n), "content": f"{n} {text}"}) for n in range(count)])
    tracemalloc.start()
    try:
        corpus = load_corpus(path)
        build_index(corpus, HashEncoder(), tmp_path / "index")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < sum(len(one.text) for one in corpus.read()) / 2


@pytest.mark.data
@pytest.mark.nightly
@pytest.mark.skipif(not FULL_DATA, reason="MEDEXAM_DATA is not set: it names the folder that holds corpus/")
def test_the_full_corpora_are_read(monkeypatch) -> None:
    monkeypatch.setenv("MEDEXAM_DATA", str(FULL_DATA))
    english = load_corpus(None)
    assert (len(english.passages), english.name) == (28_396, "passages")
    spanish = load_corpus(Path(str(FULL_DATA)) / "corpus/passages_es.jsonl.gz")
    assert len(spanish.passages) == 3_130
    assert {passage.source for passage in spanish.passages} == {"SPACCC"}
