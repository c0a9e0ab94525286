"""All programs ask in the five languages of HEAD-QA v2; nothing but the words is another."""

import json

import pytest
import yaml

from table_cases import read_cases

PROGRAMS = [case.values[0] for case in read_cases("programs_in_five_languages")]
WORDS = {"en": "Answer:", "es": "Respuesta:", "gl": "Resposta:", "it": "Risposta:", "ru": "Ответ:"}


@pytest.fixture
def five(spec, tmp_path):
    """The path of a spec that asks one question of HEAD-QA v2 with every program in each language."""
    answers = [{"aid": number, "atext": text} for number, text in enumerate(["Ferritin", "Sodium", "Iron"], start=1)]
    row = {"name": "Cuaderno_2013_1_B", "year": 2013, "category": "biology", "qid": 8, "qtext": "What stores iron?"}
    (tmp_path / "data").mkdir()
    for language in WORDS:
        line = json.dumps({**row, "ra": 1, "image": None, "answers": answers})
        (tmp_path / "data" / f"{language}.jsonl").write_text(line + "\n")
    (tmp_path / "corpus.jsonl").write_text(
        "".join(json.dumps({"id": str(n), "content": f"Ferritin {n} stores iron."}) + "\n" for n in range(2))
    )
    reply = {"text": "{Answer: 1}", "logprobs": [[-1.0], [-2.0], [-3.0]]}
    dataset = {"name": "headqa_v2", "path": "data"}
    matrix = {"program": PROGRAMS, "dataset.language": list(WORDS)}
    return spec({"*": reply}, dataset=dataset, program=None, matrix=matrix)


def test_every_program_answers_in_every_language(run, five) -> None:
    pytest.importorskip("bm25s")
    runs = run(five)
    assert len({each["run_id"] for each in runs}) == len(PROGRAMS) * len(WORDS)
    assert {(each["status"], each["metrics"]["unanswered"]) for each in runs} == {("complete", 0)}


def test_prompts_are_in_the_words_of_the_language_or_of_the_one_named(medexam, five) -> None:
    def look(program: str, languages: str) -> list[dict]:
        document = yaml.safe_load(five.read_text()) | {"program": yaml.safe_load(program)}
        five.write_text(yaml.safe_dump(document | {"matrix": {"dataset.language": languages.split()}}))
        return json.loads(medexam("plan", five, "--json")[1])

    plans = look("{kind: likelihood, read: label}", "en es gl it ru")
    assert {plan["language"]: plan["prompt"][0]["content"].splitlines()[-1] for plan in plans} == WORDS
    english, galician = look("{kind: likelihood, read: label, prompt_language: en}", "en gl")
    assert english["prompt"] == galician["prompt"]
    assert galician["program"] == "likelihood-label-words_en"


def test_a_language_without_words_is_refused_or_asked_in_another_ones(medexam, refused, tmp_path) -> None:
    rows = [
        {"question": f"Parmi les suivantes, quelle est la {n} ?", "options": ["a1", "b1", "c1"], "answer": "ABC"[n]}
        for n in range(3)
    ]
    (tmp_path / "my.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert medexam("init", "my.jsonl")[0] == 0
    tree = yaml.safe_load((tmp_path / "my.yaml").read_text())
    assert (tree["dataset"]["language"], tree["program"]["prompt_language"]) == ("fr", "en")
    assert medexam("plan", "my.yaml")[0] == 0
    del tree["program"]["prompt_language"]
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(tree))
    for language in ("fr", "ja"):
        line = refused("plan", "my.yaml", "--set", f"dataset.language={language}")
        assert f"prompt 'paper' has no words in {language!r}: set program.prompt_language to one that it has" in line
