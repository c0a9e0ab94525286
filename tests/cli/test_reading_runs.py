"""The shipped experiment with readers, from the command line, over real questions and passages."""

import gzip
import json
from pathlib import Path

import pytest

from retrievers.tiny_models import save_reader
from task_data import write_squad

SAMPLE = Path(__file__).parents[1] / "retrievers" / "corpus_sample"


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    save_reader(folder / "qa", 1)
    save_reader(folder / "nli", 2, labels=("contradiction", "neutral", "entailment"))
    return folder


@pytest.fixture
def run(medexam, readers, runs_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("MEDEXAM_CACHE", str(tmp_path / "cache"))
    data = tmp_path / "data"
    (data / "corpus").mkdir(parents=True)
    lines = gzip.decompress((SAMPLE / "passages.jsonl.gz").read_bytes())
    (data / "corpus" / "passages.jsonl.gz").write_bytes(gzip.compress(lines))
    monkeypatch.setenv("MEDEXAM_DATA", str(data))

    def call(*more: str, limit: int = 6, command: str = "run"):
        settings = [
            "dataset.name=headqa_sample",
            f"program.span_reader.reader={readers / 'qa'}",
            f"program.entailment.reader={readers / 'nli'}",
            *more,
        ]
        sets = [word for setting in settings for word in ("--set", setting)]
        return medexam(command, "headqa_v1_readers", "--limit", limit, *sets)

    return call


def predictions(name: str) -> list[dict]:
    (folder,) = Path("runs").glob(f"*{name}*")
    return [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]


def test_the_shipped_experiment_runs_and_goes_on(run) -> None:
    code, out, err = run()
    assert code == 0, err
    assert "span_reader" in out
    spans, entailed = predictions("span_reader"), predictions("entailment")
    assert len(spans) == len(entailed) == 6
    assert all(row["reply"] and row["model"] == "qa" for row in spans if row["answer"])
    assert all(row["score_unit"].startswith("nats") for row in entailed if row["answer"])
    code, _, err = run(limit=9)
    assert code == 0, err
    again = predictions("span_reader")
    assert again[:6] == spans
    assert len({row["question"] for row in again}) == len(again) == 9
    code, out, err = run(command="plan")
    assert (code, "span_reader" in out) == (0, True), err


def test_a_reader_that_is_another_model_is_refused_before_any_question(run, readers) -> None:
    code, _, err = run(f"program.span_reader.reader={readers / 'nli'}")
    assert code == 2
    assert "without a question answering head" in err.splitlines()[-1]


def test_a_setting_for_a_kind_that_is_not_there_is_refused(run) -> None:
    code, _, err = run("program.blind.option=2")
    assert (code, err) == (
        2,
        "medexam: --set program.blind.option: no program of the experiment is of the kind blind\n",
    )


def test_an_encoder_extracts_from_the_text_that_a_task_brings(medexam, readers, runs_dir, tmp_path) -> None:
    context = "It was hot in the ward. The heat explains that she fainted, and nothing else does."
    rows = [("a", context, "Why did she faint?", "The heat"), ("b", context, "Where?", "in the ward")]
    settings = [
        f"dataset.path={write_squad(tmp_path / 'spans.jsonl', rows)}",
        "dataset.language=en",
        "dataset.split=all",
        f"program={{kind: span_reader, reader: {readers / 'qa'}, context: given}}",
    ]
    sets = [word for setting in settings for word in ("--set", setting)]
    code, out, err = medexam("run", "casimedicos_extract", "--json", *sets)
    assert code == 0, err
    assert "WARNING" not in err
    (document,) = json.loads(out)
    read = {row["question"]: row for row in predictions("span_reader")}
    assert len(read) == document["metrics"]["n"] == 2
    for row in read.values():
        start, end = row["span"]
        assert (row["text"], row["alignment"], row["model"]) == (context[start:end], "literal", "qa")
    assert {"f1", "exact_match", "f1_spanish"} <= document["metrics"]["measures"].keys()
