"""`medexam data`: what it prints and how it exits."""

import json
import subprocess
import sys

import pytest

from table_cases import read_table

KEY = "headqa-v1/2013/biology/8"


def test_check_prints_counts_and_passes(medexam) -> None:
    code, out, _ = medexam("data", "check", "headqa_sample")
    assert code == 0
    assert "30 exams, 120 questions: 72 with 4 options, 48 with 5 options" in out
    assert "languages compared: en, es" in out
    assert out.endswith("sound\n")
    report = json.loads(medexam("data", "check", "headqa_sample", "--language", "es", "--json")[1])
    assert report["passed"] is True
    assert [(each["language"], each["by_discipline"]["medicine"]["2013"]) for each in report["languages"]] == [
        ("es", 4)
    ]


def test_check_exits_2_on_errors_and_lists_them(medexam, document, write_json) -> None:
    for entry in [entry for exam in document["exams"].values() for entry in exam["data"]][:7]:
        entry["ra"] = "9"
    path = write_json(document)
    code, out, _ = medexam("data", "check", "headqa_v1", "--path", path)
    assert code == 2
    assert f"{KEY}: the gold answer 9" in out
    assert "not sound: 7 errors" in out
    code, out, _ = medexam("data", "check", "headqa_v1", "--path", path, "--json")
    assert (code, len(json.loads(out)["languages"][0]["errors"])) == (2, 7)


def test_show_prints_a_question_with_its_gold_marked_and_brackets_as_they_are(
    medexam, document, first, write_json
) -> None:
    first |= {"qtext": "The ion [red]Fe[/red] is:", "image": "a.png"}
    _, text, _ = medexam("data", "show", "headqa_v1", "--path", write_json(document), "--key", KEY)
    assert f"{KEY}  Cuaderno_2013_1_B, biology 2013, en" in text
    assert text.count("* ") == text.count(f"* {first['ra']}. ") == 1
    assert "The ion [red]Fe[/red] is:" in text
    assert "(refers to the picture a.png)" in text


@pytest.mark.parametrize(*read_table("shown_questions"))
def test_show_as_json_is_one_document(medexam, words, n) -> None:
    shown = json.loads(medexam("data", "show", "headqa_sample", "--language", "es", "--json", *words)[1])
    assert len(shown) == n
    assert all(1 <= entry["gold"] <= len(entry["options"]) and entry["language"] == "es" for entry in shown)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("show nope", "headqa_sample"),
        ("show headqa_sample --language xx", "language"),
        ("show headqa_sample --set disciplines=law", "disciplines"),
        ("show headqa_sample --set years=1999", "years=1999"),
        ("show headqa_sample --key headqa-v1/2013/biology/88", "did you mean headqa-v1/2013/bi"),
        ("show headqa_sample --key ?", f"did you mean {KEY}"),
    ],
)
def test_what_is_not_there_is_named_in_one_line(medexam, words, said) -> None:
    code, _, err = medexam("data", *words.split())
    assert (code, said in err, err.count("\n")) == (2, True, 1)


def test_show_tells_of_a_question_without_an_official_answer(medexam, records, write_jsonl) -> None:
    records[0]["ra"] = 0
    words = ("--path", write_jsonl(records), "--key", "headqa-v2/2013/biology/8")
    assert "no official answer" in medexam("data", "show", "headqa_v2", *words)[2]


def test_the_command_line_starts_without_what_takes_long_to_import() -> None:
    heavy = "{'pydantic', 'dspy', 'pyarrow', 'datasets'} & set(sys.modules)"
    script = f"import sys; from medexam.cli import run_command; print({heavy})"
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "set()"
