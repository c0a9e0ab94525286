"""Imported runs beside the numbers of the harnesses that wrote the files, and what becomes of every sample."""

import gzip
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from medexam.companions.harnesses.imports.importing import Importer
from medexam.companions.harnesses.imports.reading import read_results
from medexam.companions.harnesses.imports.samples import ResultsError
from medexam.predictions import Reason
from medexam.specs import DatasetSpec

LOGS = Path(__file__).parent / "logs"
SAMPLES = next(LOGS.glob("samples_headqa_en_2*.jsonl"))
LETTERS = next(LOGS.glob("samples_headqa_en_letters_*.jsonl"))
STATED = json.loads(next(LOGS.glob("results_*.json")).read_text())["results"]
FIRST, SECOND = "headqa-v1/2013/biology/8", "headqa-v1/2016/biology/4"


@pytest.fixture(scope="module")
def importer(tmp_path_factory):
    return Importer(DatasetSpec(name="headqa_sample"), tmp_path_factory.mktemp("runs"))


@pytest.fixture
def table(tmp_path, importer):
    """Import a CSV file of these rows, of which any share may match no question."""
    careless = Importer(DatasetSpec(name="headqa_sample"), tmp_path / "runs", most_unmatched=1.0)

    def take(header, *rows):
        path = tmp_path / "answers.csv"
        path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
        (found,) = careless.take(path, print)
        return found, found.run.folder.read_predictions()

    return take


def _take(importer, path, measure=None):
    return {one.run.record.cell.program.measure: one for one in importer.take(path, print, measure)}


def _lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("measure", "divide"), [("acc", lambda _: 1), ("acc_norm", len)])
def test_a_multiple_choice_task_has_the_score_that_lm_eval_states(importer, measure, divide) -> None:
    one = _take(importer, SAMPLES)[measure]
    assert one.run.metrics.accuracy == one.account["stated"] == STATED["headqa_en"][f"{measure},none"]
    assert one.account["matched"] == one.account["samples"] == 20
    assert one.account["other_gold"] == one.account["unmatched"] == 0
    predictions = one.run.folder.read_predictions()
    for line in _lines(SAMPLES):
        doc = line["doc"]
        said = predictions[f"headqa-v1/{doc['year']}/{doc['category'].replace('nursery', 'nursing')}/{doc['qid']}"]
        texts = [answer["atext"] for answer in doc["answers"]]
        scores = [float(each[0]) / divide(text) for each, text in zip(line["filtered_resps"], texts, strict=True)]
        assert said.option_scores == dict(enumerate(scores, start=1))
        assert said.answer == max(said.option_scores, key=said.option_scores.get)
        assert (said.answer == doc["ra"]) == line[measure]


@pytest.mark.parametrize("name", ["strict-match", "flexible-extract"])
def test_each_filter_of_a_generating_task_has_its_own_score(importer, name) -> None:
    one = _take(importer, LETTERS)[f"exact_match-{name}"]
    lines = [line for line in _lines(LETTERS) if line["filter"] == name]
    assert one.run.metrics.accuracy == STATED["headqa_en_letters"][f"exact_match,{name}"]
    assert one.run.metrics.unanswered == sum(line["filtered_resps"] == ["[invalid]"] for line in lines)
    predictions = one.run.folder.read_predictions().values()
    assert sorted(said.reply for said in predictions) == sorted(line["resps"][0][0] for line in lines)


def test_both_forms_of_an_inspect_log_say_the_same(importer) -> None:
    packed, plain = (_take(importer, LOGS / f"inspect_headqa.{ending}") for ending in ("eval", "json.gz"))
    log = json.loads(gzip.decompress((LOGS / "inspect_headqa.json.gz").read_bytes()))
    assert packed.keys() == plain.keys() == {"choice-epoch-1", "choice-epoch-2"}
    stated = log["results"]["scores"][0]["metrics"]["accuracy"]["value"]
    assert sum(one.run.metrics.accuracy for one in packed.values()) / 2 == stated
    stems = {question.stem: question for question in importer.items.questions}
    for epoch in (1, 2):
        one, other = (each[f"choice-epoch-{epoch}"] for each in (packed, plain))
        assert one.run.model == "mockllm/model".rpartition("/")[2] or one.run.model == "mockllm/model"
        assert one.account["by"] == {"text and options": 10}
        said, again = (each.run.folder.read_predictions() for each in (one, other))
        for sample in (each for each in log["samples"] if each["epoch"] == epoch):
            question = stems[sample["input"]]
            found, score = said[question.key], sample["scores"]["choice"]
            texts = {option.number: option.text for option in question.options}
            assert found.answer == again[question.key].answer
            assert found.reply == sample["output"]["completion"]
            # The options were shuffled.
            chosen = sample["choices"][ord(score["answer"]) - ord("A")] if score.get("answer") else None
            assert texts.get(found.answer) == chosen
            assert importer.items.golds[question.key].accepts(found.answer) == (score["value"] == "C")


def test_a_failed_sample_is_left_out_and_counted(importer, tmp_path) -> None:
    log = json.loads(gzip.decompress((LOGS / "inspect_headqa.json.gz").read_bytes()))
    log["samples"][0] |= {"scores": {}, "error": {"message": "gone", "traceback": "", "traceback_ansi": ""}}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log), encoding="utf-8")
    one = _take(importer, path)["choice-epoch-1"]
    assert (one.account["failed"], one.run.metrics.n, one.run.complete) == (1, 9, True)
    assert one.run.warnings == ("of 10 samples in the file 1 could not be asked or scored there; they are not counted",)


def test_a_file_is_imported_once(tmp_path, monkeypatch) -> None:
    importer = Importer(DatasetSpec(name="headqa_sample"), tmp_path / "runs")
    first = _take(importer, SAMPLES, "acc")["acc"]
    monkeypatch.setattr("medexam.companions.harnesses.imports.importing.score_cell", None)
    assert _take(importer, SAMPLES, "acc")["acc"] == first


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("2", 2),
        ("2.0", 2),
        ("b", 2),
        ("(B)", 2),
        ("Answer: B.", 2),
        ("option_b", 2),
        ("cones and  CANES", 2),
        ("B. Cones and canes", 2),
        ("2) Cones and canes.", 2),
        ("B - Cones and canes", 2),
        ("The answer is B.", 2),
        ("The correct answer is (B): cones and canes", 2),
        ("La respuesta correcta es la B", 2),
        ("**B**</s>", 2),
        ("['B']", 2),
        (r"\boxed{B}", 2),
        ("B<|eot_id|>", 2),
        ("B. Horizontal", None),
        ("A or B", None),
        ("['A'; 'B']", None),
        ("7", None),
        ("2.5", None),
    ],
)
def test_an_answer_is_a_number_a_letter_or_a_text(table, answer, number) -> None:
    found, predictions = table("question,answer", f"{FIRST},{answer}")
    assert predictions[FIRST].answer == number
    assert found.account["unreadable"] == (number is None)
    assert predictions[FIRST].reason == (Reason.UNPARSED if number is None else None)


@pytest.mark.parametrize("answer", ["", " ", "N/A", "nan", "[invalid]"])
def test_an_empty_answer_is_none_and_no_fault(table, answer) -> None:
    found, predictions = table("question,answer", f"{FIRST},{answer}")
    assert (predictions[FIRST].answer, predictions[FIRST].reason) == (None, Reason.EMPTY)
    assert found.account["unreadable"] == 0
    assert found.run.warnings == ()


def test_answers_that_cannot_be_read_are_counted_and_above_a_tenth_refused(importer, tmp_path) -> None:
    keys = [question.key for question in importer.items.questions][:40]
    path = tmp_path / "answers.csv"
    for count, doubtful in ((4, "no idea"), (5, "no idea")):
        answers = [f"{doubtful} {at}" if at < count else "1" for at in range(40)]
        rows = ["question,answer", *(f"{key},{answer}" for key, answer in zip(keys, answers, strict=True))]
        path.write_text("\n".join(rows), encoding="utf-8")
        if count == 4:
            (one,) = importer.take(path, print)
            assert (one.account["unreadable"], one.run.metrics.unanswered) == (4, 4)
            assert one.run.warnings == ("unreadable answers in the file count as unanswered: 4",)
    with pytest.raises(ResultsError, match=r"5 of 40 answers .*such as 'no idea 0', 'no idea 1', 'no idea 2': "):
        list(importer.take(path, print))
    (one,) = Importer(DatasetSpec(name="headqa_sample"), tmp_path / "runs", most_unmatched=0.2).take(path, print)
    assert one.account["unreadable"] == 5


@pytest.mark.parametrize(("highest", "refused"), [(3, True), (4, True), (5, False)])
def test_numbers_that_may_count_from_0_are_refused(importer, tmp_path, highest, refused) -> None:
    questions = [question for question in importer.items.questions if len(question.options) == 5][:40]
    answers = ["0", "0.0", *(["1", "2", "3", str(highest)] * 10)[:38]]
    path = tmp_path / "answers.csv"
    rows = ["question,answer", *(f"{one.key},{answer}" for one, answer in zip(questions, answers, strict=True))]
    path.write_text("\n".join(rows), encoding="utf-8")
    if refused:
        with pytest.raises(ResultsError, match="seem to count from 0"):
            list(importer.take(path, print))
    else:
        (one,) = importer.take(path, print)
        assert one.account["unreadable"] == 2


def test_a_verdict_stands_beside_an_answer_that_cannot_be_read(table) -> None:
    found, predictions = table("question,answer,correct", f"{FIRST},I mean it,1", f"{SECOND},no idea,0")
    assert [predictions[key].answer for key in (FIRST, SECOND)] == [2, None]
    assert predictions[SECOND].reason == Reason.UNPARSED
    assert (found.account["unreadable"], found.run.metrics.accuracy) == (1, 0.5)


def test_a_verdict_alone_takes_the_right_option_or_none(table) -> None:
    found, predictions = table("question,correct", f"{FIRST},1", f"{SECOND},no")
    assert found.run.metrics.accuracy == 0.5
    assert predictions[FIRST].answer == 2
    assert (predictions[SECOND].answer, predictions[SECOND].reason) == (None, "not_told")
    assert any("marks 1 answer only as wrong" in warning for warning in found.run.warnings)


def test_every_sample_is_counted_once(table, importer) -> None:
    stem = next(question.stem for question in importer.items.questions if question.key == SECOND)
    found, _ = table(
        "question,answer", f"{FIRST},1", f"{FIRST},2", "nowhere,1", f'"{stem.upper()} ?",1', "8,1", "nowhere else,2"
    )
    assert found.account["by"] == {"key": 1, "text alone": 1}
    counted = {name: found.account[name] for name in ("samples", "matched", "unmatched", "ambiguous", "repeated")}
    assert counted == {"samples": 6, "matched": 2, "unmatched": 3, "ambiguous": 0, "repeated": 1}
    assert found.run.warnings == (
        "of 6 samples in the file 3 match no question, 1 are further ones of the same question; they are not counted",
    )


def test_questions_alike_are_taken_in_order_or_not_at_all(tmp_path) -> None:
    alike = {"question": "Which one?", "options": ["this", "that"]}
    rows = [{"id": name, **alike, "answer": right} for name, right in (("a", "A"), ("b", "B"))]
    data = tmp_path / "own.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    importer = Importer(DatasetSpec(kind="choice", path=data), tmp_path / "runs", most_unmatched=0.5)
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(json.dumps(alike | {"answer": text}) for text in ("that", "this")), encoding="utf-8")
    (one,) = importer.take(path, print)
    assert one.account["by"] == {"text and order": 2}
    assert {key: said.answer for key, said in one.run.folder.read_predictions().items()} == {"a": 2, "b": 1}
    path.write_text(json.dumps(alike | {"answer": "that"}), encoding="utf-8")
    with pytest.raises(ResultsError, match="1 of 1 samples match no question"):
        list(importer.take(path, print))


def test_an_id_that_looks_like_a_key_is_not_trusted_against_the_text(tmp_path) -> None:
    data = tmp_path / "own.jsonl"
    texts = ("How many bones has a hand?", "How many bones has a foot?")
    rows = [
        {"id": n, "question": text, "options": ["26", "27"], "answer": "A"} for n, text in enumerate(texts, start=1)
    ]
    data.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    importer = Importer(DatasetSpec(kind="choice", path=data), tmp_path / "runs")
    lines = _lines(SAMPLES)[:2]
    for line, n, text in zip(lines, (2, 1), texts, strict=True):
        line["doc"] = {"id": n, "question": text, "choices": ["26", "27"]}
        line |= {"arguments": {}, "target": "0", "acc": 1.0}
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert _take(importer, path)["acc"].account["by"] == {"text and options": 2}


def test_another_gold_in_the_file_is_told(importer, tmp_path) -> None:
    lines = _lines(SAMPLES)
    lines[0] |= {"target": "4", "acc": 1.0}  # the option that the model took, and not the right one
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    one = _take(importer, path)["acc"]
    assert one.account["other_gold"] == 1
    assert one.run.metrics.right == 4
    assert "different right answers to 1 question" in one.run.warnings[0]


def test_a_key_is_not_taken_for_the_answers_of_a_model(importer, tmp_path) -> None:
    golds = importer.items.golds
    keys = [question.key for question in importer.items.questions[:20]]
    path = tmp_path / "log.csv"
    rows = [f"{key},{golds[key].number},{golds[key].number if place < 7 else ''}" for place, key in enumerate(keys)]
    path.write_text("\n".join(["question,answer,model_answer", *rows]) + "\n")
    with pytest.raises(
        ResultsError, match=r"columns answer and model_answer [^:]+: [^:]+, such as --measure model_answer"
    ):
        list(importer.take(path, print))
    (one,) = importer.take(path, print, "model_answer")
    assert (one.run.metrics.right, one.run.metrics.n) == (7, 20)
    path.write_text("\n".join(["question,answer", *(row.rpartition(",")[0] for row in rows)]) + "\n")
    with pytest.raises(ResultsError, match="all 20 answers are right, so the column answer may be the key"):
        list(importer.take(path, print))
    (one,) = importer.take(path, print, "answer")
    assert one.run.metrics.right == 20
    path.write_text("\n".join(["question,prediction", *(row.rpartition(",")[0] for row in rows)]) + "\n")
    (one,) = importer.take(path, print)
    assert (one.run.metrics.right, one.run.record.cell.program.measure) == (20, "prediction")


@pytest.mark.parametrize(
    ("column", "is_asked"),
    [
        *((each, True) for each in ("gpt4_answer", "Model Response", "response", "llama output", "my_prediction")),
        *(
            (each, False)
            for each in ("correct_answer", "gold answer", "ground_truth_answer", "options", "reply", "exam")
        ),
    ],
)
def test_a_column_that_may_be_a_models_beside_answer_is_asked_for(importer, tmp_path, column, is_asked) -> None:
    keys = [question.key for question in importer.items.questions[:4]]
    path = tmp_path / "log.csv"
    path.write_text("\n".join([f"question,answer,{column}", *(f"{key},1,2" for key in keys)]) + "\n")
    if not is_asked:
        assert len(list(importer.take(path, print))) == 1
        return
    with pytest.raises(ResultsError, match=f"columns answer and {column} may hold the model's answers"):
        list(importer.take(path, print))


def test_a_file_that_cannot_be_read_is_refused_in_one_line(importer, tmp_path) -> None:
    cut = tmp_path / "cut.eval"
    cut.write_bytes((LOGS / "inspect_headqa.eval").read_bytes()[:20_000])
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(SAMPLES.read_bytes()[:3000])
    other = tmp_path / "other.csv"
    other.write_text("stem,reply\na,b\n")
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("question,correct\na,perhaps\n")
    said = {
        cut: "not a complete Inspect log",
        torn: "line 2: is not JSON",
        other: "needs the columns",
        wrong: "'perhaps': write 1 or 0",
    }
    said |= {
        next(LOGS.glob("results_*.json")): "give the samples_",
        tmp_path: "is neither a file",
        LOGS / "none": "is neither a file",
    }
    for path, words in said.items():
        with pytest.raises(ResultsError, match=words):
            list(importer.take(path, print))
    with pytest.raises(ResultsError, match=r"no measure 'f1': it has acc, acc_norm"):
        read_results(SAMPLES, "f1")


def test_a_member_that_zstandard_damaged_is_refused(importer, tmp_path) -> None:
    content = bytearray((LOGS / "inspect_headqa.eval").read_bytes())
    place = content.index(b"samples/1_epoch_1.json") + 60
    content[place : place + 40] = bytes(40)
    path = tmp_path / "damaged.eval"
    path.write_bytes(content)
    with pytest.raises(ResultsError, match="not a complete Inspect log"):
        list(importer.take(path, print))
    assert pa.Codec.is_available("zstd")


def test_results_beside_the_samples_are_not_needed(importer, tmp_path) -> None:
    shutil.copy(SAMPLES, tmp_path / "mine.jsonl")
    one = _take(importer, tmp_path / "mine.jsonl", "acc")["acc"]
    assert (one.account["stated"], one.run.model, one.run.metrics.right) == (None, None, 4)


def test_questions_that_we_corrected_are_found_as_they_were_published(tmp_path) -> None:
    box = "\uf061"  # alpha in the font Symbol
    row = {"qid": "8", "qtext": f"What is {box} ?", "ra": "2", "image": ""}
    row["answers"] = [{"aid": n, "atext": text} for n, text in enumerate((f"{box}-helix", "A sheet"), start=1)]
    exam = {"name": "Cuaderno_2013_1_B", "year": "2013", "category": "biology", "data": [row]}
    data = tmp_path / "HEAD_EN.json"
    data.write_text(json.dumps({"version": "1.0", "language": "en", "exams": {"Cuaderno_2013_1_B": exam}}))
    importer = Importer(DatasetSpec(name="headqa_v1", path=data), tmp_path / "runs")
    (question,) = importer.items.questions
    assert question.stem == "What is \u03b1 ?"
    path = tmp_path / "answers.jsonl"
    # Shuffled as well: the letter counts the file's options.
    shown = {"question": row["qtext"], "options": ["A sheet", f"{box}-helix"], "answer": "B"}
    path.write_text(json.dumps(shown))
    (one,) = importer.take(path, print)
    assert one.account["by"] == {"text and options": 1}
    assert one.run.folder.read_predictions()[question.key].answer == 1
