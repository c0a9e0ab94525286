"""`medexam finetune` from the command line: what it prints and writes."""

import json
from pathlib import Path

import pytest
import yaml

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
    assert record["data"][str(train)]["unanswerable"] == 1
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
