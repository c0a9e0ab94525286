"""Logs of further harnesses in the shapes that they write, made from known answers to known questions."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from medexam.companions.harnesses import ResultsError

QUESTIONS = [
    ("Which vitamin prevents scurvy?", ("Vitamin A", "Vitamin B", "Vitamin C", "Vitamin D"), 2),
    ("Which organ makes insulin?", ("Liver", "Pancreas", "Heart", "Spleen"), 1),
    ("Which bone is in the thigh?", ("Femur", "Tibia", "Ulna", "Radius"), 0),
    ("Which cell carries oxygen?", ("Platelet", "Lymphocyte", "Neuron", "Erythrocyte"), 3),
]
CHOSEN = (2, 0, 0, 3)
"""The place of the option that the model took, from 0: three of four are right."""
RIGHT = tuple(chosen == right for chosen, (_, _, right) in zip(CHOSEN, QUESTIONS, strict=True))
LETTERS = "ABCD"


def shown(stem, options) -> str:
    lines = [f"{letter}. {text}" for letter, text in zip(LETTERS, options, strict=True)]
    return "\n".join(["Answer with a letter.", f"Question: {stem}", *lines, "Answer: "])


PROMPTS = [shown(stem, options) for stem, options, _ in QUESTIONS]
LIKELIHOODS = [[-1.0 if place == chosen else -20.0 - place for place in range(4)] for chosen in CHOSEN]


def each():
    return zip(QUESTIONS, CHOSEN, RIGHT, PROMPTS, LIKELIHOODS, strict=True)


def lm_eval_sample(number, question, chosen, right, likelihoods) -> dict:
    stem, options, target = question
    return {
        "doc_id": number,
        "doc": {"question": stem, "choices": list(options), "answer": target},
        "target": target,
        "arguments": [[f"Question: {stem}\nAnswer:", f" {text}"] for text in options],
        "resps": [[[value, False]] for value in likelihoods],
        "filtered_resps": [[value, False] for value in likelihoods],
        "acc": float(right),
        "acc_norm": float(right),
    }


def lm_eval_list():
    samples = [lm_eval_sample(n, q, c, r, ls) for n, (q, c, r, _, ls) in enumerate(each())]
    return {"pretrained__gpt2_mytask.jsonl": json.dumps(samples, indent=2)}


def lm_eval_write_out():
    records = []
    for number, (question, _, right, _, likelihoods) in enumerate(each()):
        stem, options, target = question
        context = f"Q: Solved before?\nAnswer: Yes\n\nQ: {stem}\nAnswer:"
        prompts = {f"prompt_{n}": f"{context} {text}" for n, text in enumerate(options)}
        logits = {f"logit_{n}": value for n, value in enumerate(likelihoods)}
        measures = {"acc": str(float(right)), "acc_norm": str(float(right))}
        records.append({"doc_id": number, **prompts, **logits, "truth": target, **measures})
    return {"mytask_write_out_info.json": json.dumps(records, indent=4)}


def opencompass_gen():
    document = {}
    for number, ((_, _, target), chosen, _, prompt, _) in enumerate(each()):
        before = [{"role": "HUMAN", "prompt": "Solved before?"}, {"role": "BOT", "prompt": "A"}]
        asked = [*before, {"role": "HUMAN", "prompt": prompt}]
        document[str(number)] = {
            "origin_prompt": asked if number % 2 else prompt,
            "prediction": f"The answer is {LETTERS[chosen]}." if number else LETTERS[chosen],
            "gold": LETTERS[target],
        }
    return {"predictions/my-model/mytask.json": json.dumps(document, indent=4, ensure_ascii=False)}


def opencompass_ppl():
    document = {}
    for number, ((_, _, target), chosen, _, prompt, _) in enumerate(each()):
        labels = {f"label: {n}": {"testing input": prompt, "prompt": f"{prompt}{n}", "PPL": 1.0} for n in range(4)}
        document[str(number)] = {"origin_prompt": prompt, **labels, "prediction": chosen, "gold": target}
    return {"predictions/my-model/mytask.json": json.dumps(document)}


def opencompass_details():
    details = {"type": "GEN"}
    for number, ((_, _, target), chosen, right, prompt, _) in enumerate(each()):
        details[str(number)] = {
            "prompt": prompt,
            "origin_prediction": f"I say {LETTERS[chosen]}",
            "predictions": LETTERS[chosen],
            "references": LETTERS[target],
            "correct": right,
        }
    return {"results/my-model/mytask.json": json.dumps({"accuracy": 75.0, "details": details})}


def evalscope_reviews():
    lines = []
    for number, ((_, _, target), chosen, right, prompt, _) in enumerate(each()):
        score = {
            "value": {"acc": float(right)},
            "extracted_prediction": LETTERS[chosen],
            "prediction": f"ANSWER: {LETTERS[chosen]}",
            "explanation": None,
            "metadata": {},
        }
        asked = [{"role": "user", "content": prompt}] if number % 2 else prompt
        scored = {"score": score, "sample_id": number}
        lines.append({"index": number, "input": asked, "target": LETTERS[target], "sample_score": scored})
    return {"reviews/my-model/mytask_default.jsonl": "\n".join(map(json.dumps, lines))}


def evalscope_predictions():
    lines = []
    for number, (_, chosen, _, prompt, _) in enumerate(each()):
        message = {"role": "assistant", "content": f"ANSWER: {LETTERS[chosen]}"}
        output = {
            "model": "my-model",
            "choices": [{"message": message}],
            "usage": {"input_tokens": 9, "output_tokens": 3},
        }
        turns = [{"role": "user", "content": prompt}, message]
        lines.append({"index": number, "model": "my-model", "model_output": output, "messages": turns})
    return {"mytask_default.jsonl": "\n".join(map(json.dumps, lines))}


def evalscope_before():
    lines = []
    for number, ((stem, options, target), chosen, right, _, _) in enumerate(each()):
        raw = {"question": stem, **dict(zip(LETTERS, options, strict=True)), "answer": LETTERS[target]}
        review = {"gold": LETTERS[target], "pred": LETTERS[chosen], "result": float(right)}
        choice = {"index": 0, "message": {"role": "assistant", "content": f"So {LETTERS[chosen]}"}, "review": review}
        lines.append({"index": number, "model": "my-model", "raw_input": raw, "choices": [choice]})
    return {"mytask.jsonl": "\n".join(map(json.dumps, lines))}


def simple_evals():
    conversations, reports = [], []
    for (_, _, target), chosen, right, prompt, _ in each():
        asked = prompt.replace(". ", ") ").removesuffix("\nAnswer: ")
        reply = f"Let me think & see.\n\nAnswer: {LETTERS[chosen]}"
        conversations.append([{"role": "user", "content": asked}, {"role": "assistant", "content": reply}])
        reports.append(
            f"<h3>Prompt conversation</h3><pre>{asked}</pre>\n<p>Correct Answer: {LETTERS[target]}</p>\n"
            f"<p>Extracted Answer: {LETTERS[chosen]}</p>\n<p>Score: {float(right)}</p>\n"
        )
    document = {"score": 0.75, "metrics": {"chars": 9.0}, "htmls": reports, "convos": conversations, "metadata": None}
    return {"mmlu_my-model_allresults.json": json.dumps(document)}


def table(rows):
    return pa.Table.from_pylist(rows)


def lighteval_today():
    rows = []
    for (stem, options, target), _, right, _, likelihoods in each():
        doc = {"query": f"Question: {stem}\nAnswer:", "choices": [f" {text}" for text in options], "gold_index": target}
        response = {"text": [], "logprobs": likelihoods, "input": stem}
        rows.append({"doc": doc, "model_response": response, "metric": {"acc": int(right)}})
    return {"details_mytask|0_2026-01-02T03-04-05.678.parquet": table(rows)}


def lighteval_texts():
    """As some versions write it: everything as Python shows it."""
    rows = []
    for (stem, options, target), _, right, _, likelihoods in each():
        values = ", ".join(f"np.float64({value})" for value in likelihoods)
        doc = {"query": f"Question: {stem}\nAnswer:", "choices": [f" {text}" for text in options], "gold_index": target}
        shown_doc = str(doc)[:-1] + ", 'sampling_methods': [<SamplingMethod.LOGPROBS: 'LOGPROBS'>]}"
        response = f"{{'text': [], 'logprobs': [{values}]}}"
        rows.append({"doc": shown_doc, "model_response": response, "metric": str({"acc": int(right)})})
    return {"details_mytask|0_2026-01-02T03-04-05.678.parquet": table(rows)}


def lighteval_before():
    rows = []
    for (_, _, target), _, right, prompt, likelihoods in each():
        rows.append(
            {
                "example": prompt,
                "full_prompt": f"Solved before? A\n\n{prompt}",
                "choices": [" A", " B", " C", " D"],
                "gold_index": [target],
                "predictions": likelihoods,
                "metrics": {"acc": int(right)},
            }
        )
    return {"details/org/my-model/2026/details_mytask_2026-01-02T03-04-05.678.parquet": table(rows)}


def lighteval_replies():
    rows = []
    for (_, _, target), chosen, right, prompt, _ in each():
        doc = {"query": prompt, "choices": list(LETTERS), "gold_index": [target]}
        response = {"text": [f"Answer: {LETTERS[chosen]}"], "logprobs": []}
        rows.append({"doc": doc, "model_response": response, "metric": {"extractive_match": float(right)}})
    return {"details_mytask_2026-01-02T03-04-05.678.parquet": table(rows)}


SHAPES = {
    lm_eval_list: ("lm_eval", ["acc", "acc_norm"], None),
    lm_eval_write_out: ("lm_eval", ["acc", "acc_norm"], None),
    opencompass_gen: ("opencompass", ["prediction"], "my-model"),
    opencompass_ppl: ("opencompass", ["prediction"], "my-model"),
    opencompass_details: ("opencompass", ["prediction"], "my-model"),
    evalscope_reviews: ("evalscope", ["acc"], "my-model"),
    evalscope_predictions: ("evalscope", ["prediction"], "my-model"),
    evalscope_before: ("evalscope", ["acc"], "my-model"),
    simple_evals: ("simple_evals", ["score"], None),
    lighteval_today: ("lighteval", ["acc"], None),
    lighteval_texts: ("lighteval", ["acc"], None),
    lighteval_before: ("lighteval", ["acc"], "org/my-model"),
    lighteval_replies: ("lighteval", ["extractive_match"], None),
}


def write(folder: Path, files) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pa.Table):
            pq.write_table(content, path)
        else:
            path.write_text(content, encoding="utf-8")
    return path


@pytest.fixture
def importer(own_importer):
    return own_importer(
        (
            {"id": f"q{number}", "question": stem, "options": list(options), "answer": LETTERS[right]}
            for number, (stem, options, right) in enumerate(QUESTIONS)
        ),
        0.1,
    )


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_the_answers_are_those_that_were_given(shape, importer, tmp_path) -> None:
    harness, measures, model = SHAPES[shape]
    found = list(importer.take(write(tmp_path, shape()), print))
    assert [one.run.record.cell.program.measure for one in found] == measures
    for one in found:
        program = one.run.record.cell.program
        assert (program.harness, one.run.model, one.account["unreadable"]) == (harness, model, 0)
        answers = one.run.folder.read_predictions()
        assert [answers[f"q{number}"].answer for number in range(4)] == [chosen + 1 for chosen in CHOSEN]
        assert one.run.metrics.accuracy == 0.75
        assert one.run.warnings == ()


@pytest.mark.parametrize("shape", [opencompass_gen, evalscope_reviews, lighteval_replies])
def test_options_that_a_harness_shuffled_are_read_in_its_order(shape, importer, tmp_path, monkeypatch) -> None:
    turned = [(stem, options[::-1], 3 - right) for stem, options, right in QUESTIONS]
    monkeypatch.setattr(f"{__name__}.QUESTIONS", turned)
    monkeypatch.setattr(f"{__name__}.CHOSEN", tuple(3 - chosen for chosen in CHOSEN))
    monkeypatch.setattr(f"{__name__}.PROMPTS", [shown(stem, options) for stem, options, _ in turned])
    (one,) = importer.take(write(tmp_path, shape()), print)
    answers = one.run.folder.read_predictions()
    assert [answers[f"q{number}"].answer for number in range(4)] == [3, 1, 1, 4]


@pytest.mark.parametrize(("score", "number"), [("0", None), ("0.0", None), ("False", None), ("1", 3), ("1.0", 3)])
def test_the_score_of_simple_evals_stands_for_an_answer_that_cannot_be_read(
    own_importer, tmp_path, score, number
) -> None:
    stem, options, right = QUESTIONS[0]
    rows = [{"id": "q0", "question": stem, "options": list(options), "answer": LETTERS[right]}]
    document = json.loads(simple_evals()["mmlu_my-model_allresults.json"])
    report = f"<p>Correct Answer: C</p>\n<p>Extracted Answer: </p>\n<p>Score: {score}</p>\n"
    messages = document["convos"][0]
    messages[-1]["content"] = "It is well known."
    document |= {"convos": [messages], "htmls": [report]}
    path = write(tmp_path, {"mmlu_my-model_allresults.json": json.dumps(document)})
    (one,) = own_importer(rows).take(path, print)
    assert one.run.folder.read_predictions()["q0"].answer == number
    assert one.run.metrics.accuracy == float(number is not None)


def test_scores_are_kept_with_their_unit(importer, tmp_path) -> None:
    for shape in (lm_eval_write_out, lighteval_today):
        one = next(importer.take(write(tmp_path / shape.__name__, shape()), print, "acc"))
        answers = one.run.folder.read_predictions()
        assert answers["q0"].option_scores == {number + 1: value for number, value in enumerate(LIKELIHOODS[0])}
        assert (answers["q0"].score_unit, answers["q0"].score_norm) == ("nats", "sum")


def test_results_of_early_versions_beside_the_samples_tell_task_and_model(importer, tmp_path) -> None:
    beside = {
        "results": {"task": {"acc": 1}, "mytask": {"acc,none": 0.75, "alias": "mytask"}},
        "configs": {"mytask": {"task": "mytask", "output_type": "multiple_choice"}},
        "versions": {"mytask": 1},
        "config": {"model": "hf"},
    }
    path = write(tmp_path, {"results.json": json.dumps(beside), **lm_eval_list()})
    one = next(importer.take(path, print, "acc"))
    assert (one.run.record.cell.program.task, one.account["stated"], one.run.model) == ("mytask", 0.75, "hf")
    with pytest.raises(ResultsError, match=r"has totals alone, no answers; give the samples_"):
        list(importer.take(tmp_path / "results.json", print))


def test_filters_without_a_name_are_runs_of_their_own(importer, tmp_path) -> None:
    samples = json.loads(lm_eval_list()["pretrained__gpt2_mytask.jsonl"])
    path = write(tmp_path, {"twice.jsonl": json.dumps([*samples, *samples])})
    measures = [one.run.record.cell.program.measure for one in importer.take(path, print)]
    assert measures == ["acc", "acc_norm", "acc-filter-2", "acc_norm-filter-2"]


@pytest.mark.parametrize(
    ("name", "document", "said"),
    [
        ("mmlu_m.json", {"score": 0.5, "score:std": 0.1}, "give the *_allresults.json of simple-evals"),
        ("results_x.json", {"config_general": {}, "results": {}, "versions": {}}, "has totals alone, no answers"),
        ("list.jsonl", [1, 2], "entry 1: is no JSON object"),
        ("simple_allresults.json", {"convos": [[{}]]}, "record 1 is not in the format of simple_evals"),
        ("oc.json", {"0": {"origin_prompt": 5, "prediction": "A"}}, "record 1 is not in the format of opencompass"),
    ],
)
def test_what_holds_no_answers_is_refused_in_one_line(name, document, said, importer, tmp_path) -> None:
    path = write(tmp_path, {name: json.dumps(document)})
    with pytest.raises(ResultsError) as caught:
        list(importer.take(path, print))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
