"""All programs ask in the five languages of HEAD-QA v2; nothing but the words is another."""

import json

import pytest
import yaml

from task_data import write_casimedicos

PROGRAMS = [
    {"kind": "zero_shot"},
    {"kind": "zero_shot", "answer_format": "guided", "answer_form": "angles"},
    {"kind": "few_shot"},
    {"kind": "chain_of_thought"},
    {"kind": "chain_of_thought", "answer_format": "guided"},
    {"kind": "retrieve_then_answer", "retriever": {"kind": "bm25", "corpus": "corpus.jsonl"}},
    {
        "kind": "retrieve_then_answer",
        "then": "chain_of_thought",
        "retriever": {"kind": "bm25", "corpus": "corpus.jsonl"},
    },
    {"kind": "relevance", "retriever": {"kind": "bm25", "corpus": "corpus.jsonl"}},
    {"kind": "likelihood"},
    {"kind": "likelihood", "norm": "pmi"},
    {"kind": "likelihood", "read": "label"},
    *({"kind": kind} for kind in ("random", "blind", "longest")),
]
WORDS = {"en": "Answer:", "es": "Respuesta:", "gl": "Resposta:", "it": "Risposta:", "ru": "Ответ:"}


@pytest.fixture
def spec(tmp_path):
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
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": reply}))
    document = {
        "name": "languages",
        "dataset": {"name": "headqa_v2", "path": "data"},
        "model": {"engine": "scripted", "path": "replies.yaml"},
        "matrix": {"program": PROGRAMS, "dataset.language": list(WORDS)},
    }
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_every_program_answers_in_every_language(medexam, spec) -> None:
    pytest.importorskip("bm25s")
    code, out, err = medexam("run", spec, "--json", "--tracking-uri", "sqlite:////dev/null/mlflow.db")
    assert code == 0, err
    runs = json.loads(out)
    assert len({run["run_id"] for run in runs}) == len(PROGRAMS) * len(WORDS)
    assert {(run["status"], run["metrics"]["unanswered"]) for run in runs} == {("complete", 0)}


def test_prompts_are_in_the_words_of_the_language_or_of_the_one_named(medexam, spec) -> None:
    def look(program: str, languages: str) -> list[dict]:
        document = yaml.safe_load(spec.read_text()) | {"program": yaml.safe_load(program)}
        spec.write_text(yaml.safe_dump(document | {"matrix": {"dataset.language": languages.split()}}))
        return json.loads(medexam("plan", spec, "--json")[1])

    plans = look("{kind: likelihood, read: label}", "en es gl it ru")
    assert {plan["language"]: plan["prompt"][0]["content"].splitlines()[-1] for plan in plans} == WORDS
    english, galician = look("{kind: likelihood, read: label, prompt_language: en}", "en gl")
    assert english["prompt"] == galician["prompt"]
    assert galician["program"] == "likelihood-label-words_en"


@pytest.mark.parametrize("language", ["en", "es", "it"])
def test_casimedicos_is_an_exam_in_its_languages(medexam, tmp_path, language) -> None:
    folder = write_casimedicos(tmp_path / "cases", language)
    (tmp_path / "replies.yaml").write_text(yaml.safe_dump({"*": "{Answer: 1}"}))
    document = {
        "name": "cases",
        "dataset": {"name": "casimedicos", "path": str(folder), "language": language},
        "model": {"engine": "scripted", "path": "replies.yaml"},
        "matrix": {"program": [{"kind": kind} for kind in ("zero_shot", "few_shot", "chain_of_thought")]},
    }
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(document))
    code, _, err = medexam("plan", "spec.yaml")
    assert code == 0, err


def test_a_language_without_words_is_refused_in_one_line(medexam, tmp_path) -> None:
    (tmp_path / "mine.csv").write_text("question,a,b,answer\nQuelle vitamine ?,A,C,2\n")
    columns = {"stem": "question", "options": ["a", "b"], "answer": "answer", "numbering": "one"}
    document = {
        "name": "mine",
        "dataset": {"kind": "choice", "path": "mine.csv", "columns": columns, "language": "fr"},
        "program": "zero_shot",
    }
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(document))
    for language in ("fr", "ja", "zh"):
        code, _, err = medexam("plan", "spec.yaml", "--set", f"dataset.language={language}")
        assert (code, err) == (
            2,
            f"medexam: prompt 'paper' has no words in {language!r}: set program.prompt_language to one that it has "
            "(en, es, gl, it, ru), or name a file of your own in program.prompt\n",
        )
        chosen = ("--set", f"dataset.language={language}", "--set", "program.prompt_language=en")
        assert medexam("plan", "spec.yaml", *chosen)[0] == 0


def test_a_data_set_that_is_asked_in_spanish_says_so_unless_a_language_is_named(
    medexam, spec, tmp_path, monkeypatch
) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "data").rename(tmp_path / "all" / "headqa_v2")
    monkeypatch.setenv("MEDEXAM_DATA", str(tmp_path / "all"))
    command = ("run", "headqa_v2", "--program", "random", "--tracking-uri", "sqlite:////dev/null/mlflow.db")
    _, _, err = medexam(*command)
    assert "headqa_v2 is asked in Spanish, as the exams were held; for English add --language en" in err
    for named in (("--language", "en"), ("--set", "dataset.language=es")):
        assert "is asked in Spanish" not in medexam(*command, *named)[2]
