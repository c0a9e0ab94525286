"""The shipped experiment with readers, from the command line, over real questions and passages."""

import gzip
import json
from pathlib import Path

import pytest

import data_folders
from retrievers.tiny_models import save_reader
from table_cases import write_squad

SAMPLE = Path(data_folders.__file__).parent / "retrievers" / "corpus_sample"


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    save_reader(folder / "qa", 1)
    save_reader(folder / "nli", 2, labels=("contradiction", "neutral", "entailment"))
    return folder


def predictions(name: str) -> list[dict]:
    (folder,) = Path("runs").glob(f"*{name}*")
    return [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]


@pytest.mark.nightly
def test_the_shipped_experiment_runs_and_goes_on(medexam, readers, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data" / "corpus").mkdir(parents=True)
    lines = gzip.decompress((SAMPLE / "passages.jsonl.gz").read_bytes()).splitlines(keepends=True)[:40]
    (tmp_path / "data" / "corpus" / "passages.jsonl.gz").write_bytes(gzip.compress(b"".join(lines)))
    monkeypatch.setenv("MEDEXAM_DATA", str(tmp_path / "data"))

    def run(limit: int, reader: str = "qa"):
        span, entailment = (
            f"program.span_reader.reader={readers / reader}",
            f"program.entailment.reader={readers / 'nli'}",
        )
        sets = ("--set", "dataset.name=headqa_sample", "--set", span, "--set", entailment)
        return medexam("run", "headqa_v1_readers", "--limit", limit, *sets)

    code, out, err = run(4)
    assert (code, "span_reader" in out) == (0, True), err
    spans, entailed = predictions("span_reader"), predictions("entailment")
    assert len(spans) == len(entailed) == 4
    assert all(row["calls"][0]["model"] == "qa" and row["calls"][0]["text"] for row in spans if "answer" in row)
    assert all(row["score_unit"].startswith("nats") for row in entailed if "answer" in row)
    code, _, err = run(6)
    assert code == 0, err
    again = predictions("span_reader")
    assert again[:4] == spans
    assert len({row["question"] for row in again}) == len(again) == 6
    code, _, err = run(6, reader="nli")
    assert (code, "fine-tuned for span" in err.splitlines()[-1]) == (2, True)


def test_an_encoder_extracts_from_the_text_that_a_task_brings(medexam, readers, tmp_path) -> None:
    context = "It was hot in the ward. The heat explains that she fainted, and nothing else does."
    rows = [("a", context, "Why did she faint?", "The heat"), ("b", context, "Where?", "in the ward")]
    path = write_squad(tmp_path / "spans.jsonl", rows)
    program = f"program={{kind: span_reader, reader: {readers / 'qa'}, context: given}}"
    settings = (f"dataset.path={path}", "dataset.language=en", "dataset.split=all", program)
    words = [word for setting in settings for word in ("--set", setting)]
    code, out, err = medexam("run", "casimedicos_extract", *words, "--json")
    assert code == 0, err
    (document,) = json.loads(out)
    read = {row["question"]: row for row in predictions("span_reader")}
    assert len(read) == document["metrics"]["n"] == 2
    for row in read.values():
        start, end = row["span"]
        assert (row["text"], row["alignment"], row["calls"][0]["model"]) == (context[start:end], "literal", "qa")
    assert {"f1", "exact_match", "f1_spanish"} <= document["metrics"]["measures"].keys()
