"""What files of explanations hold, in figures."""

import json


def test_sentences_of_explanations_are_counted_in_percent(medexam, tmp_path) -> None:
    texts = ["One.", "One. Two.", "One. Two! Three?", "One. Two. Three. Four. Five."]
    rows = [
        {"id": str(n), "question": "Why?", "context": text, "answers": {"text": [text], "answer_start": [0]}}
        for n, text in enumerate(texts)
    ]
    (tmp_path / "spans.json").write_text(json.dumps(rows))
    words = ("casimedicos_spans", "--path", tmp_path / "spans.json", "--language", "en", "--json")
    code, out, err = medexam("data", "stats", *words)
    assert code == 0, err
    found = json.loads(out)
    assert found["sentences"] == {"1": 25.0, "2": 25.0, "3": 25.0, "more than 3": 25.0}
