"""Imported runs beside the numbers of the harnesses that wrote the files, and what becomes of every sample."""

import gzip
import json
from pathlib import Path

import pytest

from medexam.predictions import Reason
from medexam.specs import DatasetSpec
from medexam_companions.harnesses import Importer, ResultsError

LOGS = Path(__file__).parent / "logs"
SAMPLES = next(LOGS.glob("samples_headqa_en_2*.jsonl"))
LETTERS = next(LOGS.glob("samples_headqa_en_letters_*.jsonl"))
INSPECT = LOGS / "inspect_headqa.json.gz"
STATED = json.loads(next(LOGS.glob("results_*.json")).read_text())["results"]
FIRST, SECOND = "headqa-v1/2013/biology/8", "headqa-v1/2016/biology/4"


@pytest.fixture
def table(tmp_path, write_table):
    """Import a CSV file of these rows, of which any share may match no question."""
    careless = Importer(DatasetSpec(name="headqa_sample"), tmp_path / "runs", most_unmatched=1.0)

    def read(*lines):
        (found,) = careless.take(write_table(*lines), print)
        return found, found.folder.read_predictions()

    return read


def _lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _write(path, lines) -> Path:
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


@pytest.mark.parametrize(("measure", "divide"), [("acc", lambda _: 1), ("acc_norm", len)])
def test_a_multiple_choice_task_has_the_score_that_lm_eval_states(sample_importer, take, measure, divide) -> None:
    one = take(sample_importer, SAMPLES)[measure]
    assert (
        one.metrics.measure("accuracy").value
        == one.environment["imported"]["stated"]
        == STATED["headqa_en"][f"{measure},none"]
    )
    assert one.environment["imported"]["matched"] == one.environment["imported"]["samples"] == 20
    assert one.environment["imported"]["other_gold"] == one.environment["imported"]["unmatched"] == 0
    predictions = one.folder.read_predictions()
    for line in _lines(SAMPLES):
        doc = line["doc"]
        said = predictions[f"headqa-v1/{doc['year']}/{doc['category'].replace('nursery', 'nursing')}/{doc['qid']}"]
        texts = [answer["atext"] for answer in doc["answers"]]
        scores = [float(each[0]) / divide(text) for each, text in zip(line["filtered_resps"], texts, strict=True)]
        assert said.option_scores == dict(enumerate(scores, start=1))
        assert said.answer == max(said.option_scores, key=said.option_scores.get)
        assert (said.answer == doc["ra"]) == line[measure]


def test_a_measure_that_is_a_share_for_some_sample_says_nothing_of_right_and_wrong(
    sample_importer, take, tmp_path
) -> None:
    lines = _lines(SAMPLES)
    for line in lines:
        line |= {"metrics": ["acc", "brier"], "brier": float(line["acc"])}
    lines[3]["brier"] = 0.5
    assert take(sample_importer, _write(tmp_path / "samples.jsonl", lines)).keys() == {"acc"}


@pytest.mark.parametrize("name", ["strict-match", "flexible-extract"])
def test_each_filter_of_a_generating_task_has_its_own_score(sample_importer, take, name) -> None:
    one = take(sample_importer, LETTERS)[f"exact_match-{name}"]
    lines = [line for line in _lines(LETTERS) if line["filter"] == name]
    assert one.metrics.measure("accuracy").value == STATED["headqa_en_letters"][f"exact_match,{name}"]
    assert one.metrics.unanswered == sum(line["filtered_resps"] == ["[invalid]"] for line in lines)
    predictions = one.folder.read_predictions().values()
    assert sorted(said.reply for said in predictions) == sorted(line["resps"][0][0] for line in lines)


def test_both_forms_of_an_inspect_log_say_the_same(sample_importer, take) -> None:
    packed, plain = (take(sample_importer, path) for path in (LOGS / "inspect_headqa.eval", INSPECT))
    log = json.loads(gzip.decompress(INSPECT.read_bytes()))
    assert packed.keys() == plain.keys() == {"choice-epoch-1", "choice-epoch-2"}
    stated = log["results"]["scores"][0]["metrics"]["accuracy"]["value"]
    assert sum(one.metrics.measure("accuracy").value for one in packed.values()) / 2 == stated
    stems = {question.stem: question for question in sample_importer.items.questions}
    for epoch in (1, 2):
        one, other = (each[f"choice-epoch-{epoch}"] for each in (packed, plain))
        assert one.environment["imported"]["by"] == {"text": 10}
        said, again = (each.folder.read_predictions() for each in (one, other))
        for sample in (each for each in log["samples"] if each["epoch"] == epoch):
            question = stems[sample["input"]]
            found, score = said[question.key], sample["scores"]["choice"]
            texts = {option.number: option.text for option in question.options}
            assert found.answer == again[question.key].answer
            assert found.reply == sample["output"]["completion"]
            # The options were shuffled.
            chosen = sample["choices"][ord(score["answer"]) - ord("A")] if score.get("answer") else None
            assert texts.get(found.answer) == chosen
            assert sample_importer.items.golds[question.key].accepts(found.answer) == (score["value"] == "C")


def test_a_failed_sample_is_left_out_and_counted(sample_importer, take, tmp_path) -> None:
    log = json.loads(gzip.decompress(INSPECT.read_bytes()))
    log["samples"][0] |= {"scores": {}, "error": {"message": "gone", "traceback": "", "traceback_ansi": ""}}
    (tmp_path / "log.json").write_text(json.dumps(log), encoding="utf-8")
    one = take(sample_importer, tmp_path / "log.json")["choice-epoch-1"]
    assert (one.environment["imported"]["failed"], one.metrics.n, one.complete) == (1, 9, True)
    assert one.warnings == ("of 10 samples in the file 1 could not be asked or scored there; they are not counted",)


@pytest.mark.parametrize("odd", ["nan", "inf", "-inf"])
def test_a_likelihood_that_is_none_is_a_sample_that_failed(sample_importer, take, tmp_path, odd) -> None:
    lines = _lines(SAMPLES)
    lines[0]["filtered_resps"][0][0] = odd
    one = take(sample_importer, _write(tmp_path / SAMPLES.name, lines))["acc"]
    assert one.environment["imported"]["failed"] == 1


def test_a_file_is_imported_once_with_or_without_the_results_beside_it(take, tmp_path) -> None:
    importer = Importer(DatasetSpec(name="headqa_sample"), tmp_path / "runs")
    lines = _write(tmp_path / "mine.jsonl", _lines(SAMPLES))
    first, again = (take(importer, lines, "acc")["acc"] for _ in range(2))
    assert again == first
    assert len(list((tmp_path / "runs").iterdir())) == 1
    assert (first.environment["imported"]["stated"], first.model, first.metrics.right) == (None, None, 4)


ANSWERS = {
    **dict.fromkeys(("2", "2.0", "b", "(B)", "Answer: B.", "option_b", "cones and  CANES", "B. Cones and canes"), 2),
    **dict.fromkeys(("2) Cones and canes.", "B - Cones and canes", "The answer is B.", "**B**</s>", "['B']"), 2),
    **dict.fromkeys(("The correct answer is (B): cones and canes", "La respuesta correcta es la B"), 2),
    **dict.fromkeys((r"\boxed{B}", "B<|eot_id|>"), 2),
    **dict.fromkeys(("B. Horizontal", "A or B", "['A'; 'B']", "7", "2.5"), None),
    **dict.fromkeys(("", " ", "N/A", "nan", "[invalid]"), Reason.EMPTY),
}
"""What a table says -> the option's number; None if it cannot be read."""


def test_an_answer_is_a_number_a_letter_or_a_text(own_importer, write_table) -> None:
    shown = ["Rods", "Cones and canes", "Horizontal", "Ganglia"]
    importer = own_importer(
        {"id": f"q{n}", "question": f"What {n}?", "options": shown, "answer": "A"} for n in range(40)
    )
    rows = [f'q{n},"{answer}"' for n, answer in enumerate(ANSWERS)]
    (found,) = importer.take(write_table("question,answer", *rows), print)
    predictions = found.folder.read_predictions()
    for n, (text, expected) in enumerate(ANSWERS.items()):
        said = predictions[f"q{n}"]
        number = expected if isinstance(expected, int) else None
        reason = None if number else expected or Reason.UNPARSED
        assert (said.answer, said.reason) == (number, reason), text
    assert found.environment["imported"]["unreadable"] == sum(expected is None for expected in ANSWERS.values())


FORMS = [
    ({}, None, None),
    ({"names": "B"}, 4, None),
    ({"names": "2"}, None, 3),
    ({"names": "Zinc"}, 3, 1),
]
"""What another row says, and then how `D` and `3` are read where an option's text is a letter or a number."""


@pytest.mark.parametrize(("others", "vitamin", "count"), FORMS)
def test_a_doubtful_choice_is_read_as_the_file_writes_the_others_or_not_at_all(
    own_importer, write_table, others, vitamin, count
) -> None:
    options = {"vitamin": "ACDE", "count": "3456", "names": ("Ivermectin", "Zinc", "Iron", "Insulin")}
    importer = own_importer(
        {"id": key, "question": f"Which {key}?", "options": list(texts), "answer": "A"}
        for key, texts in options.items()
    )
    rows = [f"{key},{text}" for key, text in {"vitamin": "D", "count": "3", **others}.items()]
    (found,) = importer.take(write_table("question,prediction", *rows), print)
    predictions = found.folder.read_predictions()
    assert (predictions["vitamin"].answer, predictions["count"].answer) == (vitamin, count)


def test_answers_that_cannot_be_read_are_counted_and_above_a_tenth_refused(
    sample_importer, tmp_path, write_table
) -> None:
    keys = [question.key for question in sample_importer.items.questions][:40]

    def path(count):
        answers = [f"no idea {at}" if at < count else "1" for at in range(40)]
        return write_table("question,answer", *(f"{key},{said}" for key, said in zip(keys, answers, strict=True)))

    (one,) = sample_importer.take(path(4), print)
    assert (one.environment["imported"]["unreadable"], one.metrics.unanswered) == (4, 4)
    assert one.warnings == ("unreadable answers in the file count as unanswered: 4",)
    with pytest.raises(ResultsError, match=r"5 of 40 answers .*such as 'no idea 0', 'no idea 1', 'no idea 2': "):
        list(sample_importer.take(path(5), print))
    (one,) = Importer(DatasetSpec(name="headqa_sample"), tmp_path / "runs", most_unmatched=0.2).take(path(5), print)
    assert one.environment["imported"]["unreadable"] == 5


@pytest.mark.parametrize(("highest", "refused"), [(3, True), (4, True), (5, False)])
def test_numbers_that_may_count_from_0_are_refused(sample_importer, write_table, highest, refused) -> None:
    questions = [question for question in sample_importer.items.questions if len(question.options) == 5][:40]
    answers = ["0", "0.0", *(["1", "2", "3", str(highest)] * 10)[:38]]
    path = write_table("question,answer", *(f"{q.key},{said}" for q, said in zip(questions, answers, strict=True)))
    if refused:
        with pytest.raises(ResultsError, match="seem to count from 0"):
            list(sample_importer.take(path, print))
    else:
        (one,) = sample_importer.take(path, print)
        assert one.environment["imported"]["unreadable"] == 2


def test_a_verdict_stands_beside_an_answer_that_cannot_be_read(table) -> None:
    found, predictions = table("question,answer,correct", f"{FIRST},I mean it,1", f"{SECOND},no idea,0")
    assert [predictions[key].answer for key in (FIRST, SECOND)] == [2, None]
    assert predictions[SECOND].reason == Reason.UNPARSED
    assert (found.environment["imported"]["unreadable"], found.metrics.measure("accuracy").value) == (1, 0.5)


def test_a_verdict_alone_takes_the_right_option_or_none(table) -> None:
    found, predictions = table("question,correct", f"{FIRST},1", f"{SECOND},no")
    assert found.metrics.measure("accuracy").value == 0.5
    assert predictions[FIRST].answer == 2
    assert (predictions[SECOND].answer, predictions[SECOND].reason) == (None, "not_told")
    assert any("marks 1 answer only as wrong" in warning for warning in found.warnings)


def test_every_sample_is_counted_once(table, sample_importer, write_table) -> None:
    stem = next(question.stem for question in sample_importer.items.questions if question.key == SECOND)
    rows = (f"{FIRST},1", f"{FIRST},2", "nowhere,1", f'"{stem.upper()} ?",1', "8,1", "nowhere else,2")
    with pytest.raises(ResultsError, match="3 of 6 samples match no question"):
        list(sample_importer.take(write_table("question,answer", *rows), print))
    found, _ = table("question,answer", *rows)
    assert found.environment["imported"]["by"] == {"key": 1, "text": 1}
    counted = {
        name: found.environment["imported"][name]
        for name in ("samples", "matched", "unmatched", "ambiguous", "repeated")
    }
    assert counted == {"samples": 6, "matched": 2, "unmatched": 3, "ambiguous": 0, "repeated": 1}
    assert found.warnings == (
        "of 6 samples in the file 3 match no question, 1 are further ones of the same question; they are not counted",
    )


def test_questions_alike_are_taken_in_order_or_not_at_all(own_importer, tmp_path) -> None:
    alike = {"question": "Which one?", "options": ["this", "that"]}
    importer = own_importer([{"id": name, **alike, "answer": right} for name, right in (("a", "A"), ("b", "B"))], 0.5)
    path = _write(tmp_path / "answers.jsonl", [alike | {"answer": text} for text in ("that", "this")])
    (one,) = importer.take(path, print)
    assert one.environment["imported"]["by"] == {"text and order": 2}
    assert {key: said.answer for key, said in one.folder.read_predictions().items()} == {"a": 2, "b": 1}
    with pytest.raises(ResultsError, match="1 of 1 samples match no question"):
        list(importer.take(_write(path, [alike | {"answer": "that"}]), print))


def test_an_id_that_looks_like_a_key_is_not_trusted_against_the_text(own_importer, take, tmp_path) -> None:
    texts = ("How many bones has a hand?", "How many bones has a foot?")
    importer = own_importer(
        {"id": n, "question": text, "options": ["26", "27"], "answer": "A"} for n, text in enumerate(texts, start=1)
    )
    lines = _lines(SAMPLES)[:2]
    for line, n, text in zip(lines, (2, 1), texts, strict=True):
        line["doc"] = {"id": n, "question": text, "choices": ["26", "27"]}
        line |= {"arguments": {}, "target": "0", "acc": 1.0}
    assert take(importer, _write(tmp_path / "samples.jsonl", lines))["acc"].environment["imported"]["by"] == {"text": 2}


def test_another_gold_in_the_file_is_told(sample_importer, take, tmp_path) -> None:
    lines = _lines(SAMPLES)
    lines[0] |= {"target": "4", "acc": 1.0}  # the option that the model took, and not the right one
    one = take(sample_importer, _write(tmp_path / "samples.jsonl", lines))["acc"]
    assert (one.environment["imported"]["other_gold"], one.metrics.right) == (1, 4)
    assert "different right answers to 1 question" in one.warnings[0]


def test_a_key_is_not_taken_for_the_answers_of_a_model(sample_importer, write_table) -> None:
    golds = sample_importer.items.golds
    keys = [question.key for question in sample_importer.items.questions[:20]]
    both = [f"{key},{golds[key].number},{golds[key].number if at < 7 else ''}" for at, key in enumerate(keys)]
    alone = [row.rpartition(",")[0] for row in both]

    path = write_table("question,answer,model_answer", *both)
    with pytest.raises(ResultsError, match=r"columns answer and model_answer .*such as --measure model_answer"):
        list(sample_importer.take(path, print))
    (one,) = sample_importer.take(path, print, "model_answer")
    assert (one.metrics.right, one.metrics.n) == (7, 20)
    path = write_table("question,answer", *alone)
    with pytest.raises(ResultsError, match="all 20 answers are right, so the column answer may be the key"):
        list(sample_importer.take(path, print))
    (one,) = sample_importer.take(path, print, "answer")
    assert one.metrics.right == 20
    (one,) = sample_importer.take(write_table("question,prediction", *alone), print)
    assert (one.metrics.right, one.record.cell.program.measure) == (20, "prediction")


def test_a_column_that_may_be_a_models_beside_answer_is_asked_for(sample_importer, write_table) -> None:
    rows = [f"{question.key},1,2" for question in sample_importer.items.questions[:4]]
    for column in ("gpt4_answer", "Model Response", "response", "llama output", "my_prediction"):
        with pytest.raises(ResultsError, match=f"columns answer and {column} may hold the model's answers"):
            list(sample_importer.take(write_table(f"question,answer,{column}", *rows), print))
    for column in ("correct_answer", "gold answer", "ground_truth_answer", "options", "reply", "exam"):
        assert len(list(sample_importer.take(write_table(f"question,answer,{column}", *rows), print))) == 1


def test_a_file_that_cannot_be_read_is_refused_in_one_line(sample_importer, tmp_path) -> None:
    whole = (LOGS / "inspect_headqa.eval").read_bytes()
    damaged = whole.index(b"samples/1_epoch_1.json") + 60
    # Of the entry in the zip's directory, 30 bytes before its name.
    checksum = whole.index(b"samples/1_epoch_1.json", whole.index(b"PK\x01\x02")) - 30
    contents = {
        "checksum.eval": (whole[:checksum] + bytes(4) + whole[checksum + 4 :], "does not fit the checksum"),
        "cut.eval": (whole[:20_000], "not in the format of Inspect, or not whole"),
        "damaged.eval": (
            whole[:damaged] + bytes(40) + whole[damaged + 40 :],
            "not in the format of Inspect, or not whole",
        ),
        "torn.jsonl": (SAMPLES.read_bytes()[:3000], "line 2: is not JSON"),
        "other.csv": (b"stem,reply\na,b\n", "needs the columns"),
        "wrong.csv": (b"question,correct\na,perhaps\n", "'perhaps': write 1 or 0"),
    }
    said = {next(LOGS.glob("results_*.json")): "has totals alone, no answers", tmp_path: "is neither a file"}
    for name, (content, words) in contents.items():
        (tmp_path / name).write_bytes(content)
        said[tmp_path / name] = words
    for path, words in said.items():
        with pytest.raises(ResultsError, match=words) as caught:
            list(sample_importer.take(path, print))
        assert "\n" not in str(caught.value)
    with pytest.raises(ResultsError, match=r"no measure 'f1': it has acc, acc_norm"):
        list(sample_importer.take(SAMPLES, print, "f1"))


def test_questions_that_were_corrected_are_found_as_they_were_published(tmp_path) -> None:
    box = "\uf061"  # alpha in the font Symbol
    row = {"qid": "8", "qtext": f"What is {box} ?", "ra": "2", "image": ""}
    row["answers"] = [{"aid": n, "atext": text} for n, text in enumerate((f"{box}-helix", "A sheet"), start=1)]
    exam = {"name": "Cuaderno_2013_1_B", "year": "2013", "category": "biology", "data": [row]}
    data = tmp_path / "HEAD_EN.json"
    data.write_text(json.dumps({"version": "1.0", "language": "en", "exams": {"Cuaderno_2013_1_B": exam}}))
    importer = Importer(DatasetSpec(name="headqa_v1", path=data), tmp_path / "runs")
    (question,) = importer.items.questions
    assert question.stem == "What is \u03b1 ?"
    # Shuffled as well: the letter counts the file's options.
    shown = {"question": row["qtext"], "options": ["A sheet", f"{box}-helix"], "answer": "B"}
    (one,) = importer.take(_write(tmp_path / "answers.jsonl", [shown]), print)
    assert one.environment["imported"]["by"] == {"text": 1}
    assert one.folder.read_predictions()[question.key].answer == 1
