"""CasiMedicos' questions with spans: written in the four variants, and counted."""

import json
import shutil
from pathlib import Path

from medexam.datasets import read_squad
from medexam_companions.casimedicos import read_casimedicos, write_variants

SAMPLE = Path(__file__).with_name("sample")


def test_each_variant_is_a_file_whose_spans_stand_at_their_offsets(tmp_path) -> None:
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
    assert write_variants(tmp_path / "spans.json", tmp_path / "out", "es", archive) == ("x",)
    names = ["CQ#E", "CQP#E", "Q#CE", "QP#CE"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"{name}.json" for name in names}
    for name in names:
        items = read_squad(tmp_path / "out" / f"{name}.json")
        assert {item.variant for item in items} == {name}
        assert not any(item.anomalies for item in items)
        spans = [" ".join(row["answers"]["text"][0].split()) for row in rows]
        assert [item.answers[0].text for item in items] == spans


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
