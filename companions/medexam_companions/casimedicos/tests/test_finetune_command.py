"""`medexam finetune` and `finetune-grid` from the command line: what they print, write and send to MLflow."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from medexam.datasets import read_squad
from medexam_companions.casimedicos import read_casimedicos
from retrievers.tiny_models import save_bert

SAMPLE = Path(__file__).with_name("sample")


@pytest.fixture
def train(tmp_path):
    texts = ["the heart is blood", "the kidney and fever", "bone of the lung", "treat the nerve"]
    rows = [
        {
            "id": str(n),
            "question": "what is",
            "context": text,
            "answers": [{"text": text[-5:], "answer_start": len(text) - 5}],
        }
        for n, text in enumerate(texts)
    ]
    rows.append({"id": "none", "question": "what is", "context": "the heart", "answers": []})
    path = tmp_path / "train.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_an_encoder_becomes_a_reader(medexam, train, tmp_path, uri, client) -> None:
    base = save_bert(tmp_path / "base", 1)
    command = ["finetune", "--model", base, "--train", train, "--epochs", 1, "--device", "cpu", "--tracking-uri", uri]
    code, out, err = medexam(*command, "--out", "one", "--validation", train)
    assert code == 0, err
    assert "train: 5 of 5 questions in 5 windows" in out
    assert "validation, SQuAD's rule: F1 " in out
    assert "--set program.span_reader.reader=one" in out
    assert "left out" not in err
    assert json.loads((tmp_path / "one" / "finetuning.json").read_text())["data"]["train"]["unanswerable"] == 1
    experiment = client.get_experiment_by_name("finetuning")
    (one,) = client.search_runs([experiment.experiment_id])
    assert one.info.run_name == "one"
    assert one.data.params["epochs"] == "1"
    assert {"train.loss", "validation.squad.f1", "validation.spanish.exact_match"} <= set(one.data.metrics)


@pytest.mark.nightly
def test_a_grid_is_planned_learnt_and_printed(medexam, train, tmp_path, uri, client) -> None:
    grid = {
        "encoders": {"tiny": str(save_bert(tmp_path / "base", 1))},
        "trainings": {"CM": [], "SQAC+CM": [str(train)]},
        "train": str(train),
        "validation": str(train),
        "variants": ["CQ#E"],
        "epochs": 1,
    }
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(grid))
    command = ("finetune-grid", tmp_path / "grid.yaml", "--out", "out", "--device", "cpu", "--tracking-uri", uri)
    code, out, err = medexam(*command, "--plan")
    assert (code, "3 stages of 2 cells are pending" in out) == (0, True), err
    code, out, err = medexam(*command, "--training", "CM", "--json")
    assert code == 0, err
    assert [(cell["training"], cell["scores"] is None) for cell in json.loads(out)] == [("CM", False)]
    code, out, err = medexam(*command)
    assert code == 0, err
    assert "tiny, SQAC+CM, CQ#E: stage 1 of 2, train.jsonl" in err
    assert "tiny, CM" not in err
    assert "tiny CQ#E" in out
    experiment = client.get_experiment_by_name("finetuning")
    assert len(client.search_runs([experiment.experiment_id])) == 2


def test_each_variant_is_a_file_whose_spans_stand_at_their_offsets(medexam, tmp_path) -> None:
    """An English document of the sample stands for the training split of the unpacked archive."""
    archive = tmp_path / "archive"
    shutil.copytree(SAMPLE / "ES", archive / "ES")
    shutil.copy(SAMPLE / "EN" / "dev.tsv", archive / "ES" / "train.tsv")
    rows = []
    for number, document in enumerate(read_casimedicos(archive, "es")):
        words = document.explanation.split()
        span, start = "  ".join(words[3:9]), len("Caso.\n" + "  ".join(words[:3]) + "  ")
        answers = {"text": [span], "answer_start": [start]}
        context = "Caso.\n" + "  ".join(words)
        rows.append({"id": number, "context": context, "question": document.question, "answers": answers})
    strange = {"id": "x", "context": "Nada.", "question": "?", "answers": {"text": ["Nada"], "answer_start": [0]}}
    (tmp_path / "spans.json").write_text(json.dumps([*rows, strange]))
    code, out, err = medexam("data", "variants", "spans.json", "--out", "out", "--path", archive, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert (told["questions"], told["unplaced"]) == (len(rows), ["x"])
    assert list(told["files"]) == ["CQ#E", "CQP#E", "Q#CE", "QP#CE"]
    for name, path in told["files"].items():
        items = read_squad(Path(path))
        assert {item.variant for item in items} == {name}
        assert not any(item.anomalies for item in items)
        spans = [" ".join(row["answers"]["text"][0].split()) for row in rows]
        assert [item.answers[0].text for item in items] == spans
