"""`medexam finetune` from the command line: what it prints and writes, and the variants to learn from."""

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


def test_an_encoder_becomes_a_reader_once(medexam, train, tmp_path) -> None:
    base = save_bert(tmp_path / "base", 1)
    command = ["finetune", "--model", base, "--train", train, "--set", "epochs=1", "--set", "device=cpu"]
    code, out, err = medexam(*command, "--out", "one", "--validation", train)
    assert code == 0, err
    assert "base: stage 1 of 1, train.jsonl" in err
    assert "5 of 5 questions are in the training data too" in err
    assert "left out" not in err
    (row,) = [line for line in out.splitlines() if " one" in line]
    assert "base" in row
    record = json.loads((tmp_path / "one" / "finetuning.json").read_text())
    assert record["data"][0]["unanswerable"] == 1
    assert (tmp_path / "one" / "model.safetensors").exists()
    code, again, err = medexam(*command, "--out", "one", "--validation", train)
    assert (code, again, err) == (0, out, "")
    code, _, err = medexam(*command, "--out", "one", "--validation", train, "--set", "seed=1")
    assert code == 2
    assert "one: exists already" in err


@pytest.mark.nightly
def test_a_matrix_is_planned_learnt_and_printed(medexam, train, tmp_path) -> None:
    grid = {
        "encoders": {"tiny": str(save_bert(tmp_path / "base", 1))},
        "trainings": {"CM": [], "SQAC+CM": [str(train)]},
        "train": str(train),
        "validation": str(train),
        "variants": ["CQ#E", "Q#CE"],
        "epochs": 1,
        "device": "cpu",
        "keep_weights": False,
    }
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(grid))
    command = ("finetune", tmp_path / "grid.yaml", "--out", "out")
    code, out, err = medexam(*command, "--plan")
    assert (code, "5 stages of 4 cells are pending" in out) == (0, True), err
    code, out, err = medexam(*command, "--set", "trainings={CM: []}", "--json")
    assert code == 0, err
    cells = json.loads(out)
    assert [(cell["training"], cell["variant"], cell["pending"]) for cell in cells] == [
        ("CM", "CQ#E", 0),
        ("CM", "Q#CE", 0),
    ]
    assert all(cell["record"]["validation"]["squad"]["n"] == 4 for cell in cells)
    code, out, err = medexam(*command)
    assert code == 0, err
    assert "tiny, SQAC+CM, CQ#E: stage 1 of 3, train.jsonl" in err
    assert "tiny, CM" not in err
    assert "tiny, SQAC+CM, Q#CE" in out
    assert not list(tmp_path.glob("out/cells/*/*.safetensors"))
    assert len(list(tmp_path.glob("out/stages/*/*.safetensors"))) == 1


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
