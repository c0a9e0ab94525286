"""Local models that read passages: each option is judged by its own passages, and identity follows the weights."""

import pytest

import medexam
from retrievers.tiny_models import save_reader

LABELS = ("contradiction", "entailment", "neutral")
QUESTIONS = """question,A,B,C,answer
which drug?,heart,a kidney of blood,lung,B
what is a nerve?,bone,fever,a cell,C
"""
"""Short: the tiny model's tokens are letters, and a reader cuts what is long."""
FINDER = """
from medexam.retrievers import Hit, Passage


class Finder:
    digest = "finder"

    def search(self, queries, k):
        return [[self.hit(query, rank) for rank in range(1, k + 1)] for query in queries]

    def hit(self, query, rank):
        content = f"The drug {len(query)} is of the heart. It is number {rank}."
        return Hit(Passage(f"{query} {rank}", "", content, "test"), 1 / rank, rank)
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "finder.py").write_text(FINDER)
    return {"kind": "entailment", "retriever": {"kind": f"{tmp_path}/finder.py:Finder"}, "k": 2}


@pytest.mark.model
def test_each_option_has_the_entailment_of_the_best_sentence_of_its_passages(program, tmp_path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    reader = save_reader(tmp_path / "nli", 3, labels=LABELS)
    (tmp_path / "mine.csv").write_text(QUESTIONS)
    columns = {"stem": "question", "options": ["A", "B", "C"], "answer": "answer"}
    dataset = {"kind": "choice", "path": str(tmp_path / "mine.csv"), "columns": columns}
    spec = {"name": "read", "dataset": dataset, "program": {**program, "reader": str(reader)}}
    (run,) = medexam.run(spec, runs_dir=tmp_path / "runs", progress=False, track=False)
    tokenizer = AutoTokenizer.from_pretrained(reader)
    model = AutoModelForSequenceClassification.from_pretrained(reader)

    def entailed(sentence, hypothesis):
        with torch.no_grad():
            logits = model(**tokenizer(sentence, hypothesis, return_tensors="pt")).logits[0]
        return logits.log_softmax(-1)[LABELS.index("entailment")].item()

    for question in medexam.load_questions(spec["dataset"]):
        expected = {}
        for option in question.options:
            query = f"{question.stem} {option.text}"
            sentences = [f"The drug {len(query)} is of the heart.", *(f"It is number {rank}." for rank in (1, 2))]
            expected[option.number] = max(entailed(sentence, query) for sentence in sentences)
        prediction = run.predictions[question.key]
        assert prediction.option_scores == pytest.approx(expected, abs=1e-4)
        assert prediction.answer == max(expected, key=expected.get)
