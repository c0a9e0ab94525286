"""`medexam finetune` and `finetune-grid` from the command line: what they print, write and send to MLflow."""

import json

import pytest
import yaml

from retrievers.tiny_models import save_bert
from soak.disks import limited_files


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
    command = ["finetune", "--model", base, "--train", train, "--epochs", 2, "--device", "cpu", "--tracking-uri", uri]
    code, out, err = medexam(*command, "--out", "one", "--validation", train)
    assert code == 0, err
    assert "train: 5 of 5 questions in 5 windows" in out
    assert "validation, SQuAD's rule: F1 " in out
    assert "--set program.span_reader.reader=one" in out
    assert "left out" not in err
    code, out, err = medexam(*command, "--out", "two", "--json")
    assert code == 0, err
    assert json.loads(out)["data"]["train"]["unanswerable"] == 1
    experiment = client.get_experiment_by_name("finetuning")
    runs = client.search_runs([experiment.experiment_id])
    assert {run.info.run_name for run in runs} == {"one", "two"}
    (one,) = [run for run in runs if run.info.run_name == "one"]
    assert one.data.params["epochs"] == "2"
    assert {"train.loss", "validation.squad.f1", "validation.spanish.exact_match"} <= set(one.data.metrics)


def test_mistakes_are_one_line(medexam, train, tmp_path) -> None:
    code, _, err = medexam("finetune", "--model", tmp_path / "no", "--train", train, "--out", "o")
    assert (code, err) == (2, f"medexam: {tmp_path / 'no'}: no such model folder\n")
    code, _, err = medexam("finetune", "--model", "m", "--train", train, "--out", "o", "--learning-rate", -1)
    assert (code, err.count("\n"), "learning_rate" in err) == (2, 1, True)


def test_a_full_disk_is_one_line_and_leaves_nothing(medexam, train, tmp_path) -> None:
    base = save_bert(tmp_path / "base", 1)
    with limited_files(20_000):
        code, _, err = medexam("finetune", "--model", base, "--train", train, "--epochs", 1, "--out", "out")
    *_, last = err.splitlines()
    assert (code, last.startswith("medexam: out: cannot be written: "), "Traceback" in err) == (2, True, False)
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]


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


def test_mistakes_of_a_grid_are_one_line(medexam, tmp_path) -> None:
    code, _, err = medexam("finetune-grid", "no.yaml", "--out", "out")
    assert (code, err.count("\n"), "cannot be read" in err) == (2, 1, True)
    (tmp_path / "grid.yaml").write_text("encoders: {a: b}\ntrainings: {CM: []}\ntrain: t.json\n")
    code, _, err = medexam("finetune-grid", tmp_path / "grid.yaml", "--out", "out")
    assert (code, err.count("\n"), "validation" in err) == (2, 1, True)
