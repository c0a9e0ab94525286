"""What a report says beside its tables: what is missing and why, what was found, and which runs are ranked."""

import json

import pyarrow.parquet as pq
import pytest

import medexam
from medexam.predictions import Failure, Reason, Status
from table_cases import read_table

ZERO_SHOT, GUIDED = {"kind": "zero_shot"}, {"kind": "zero_shot", "answer_format": "guided"}
THOUGHT = {"kind": "chain_of_thought"}
TYPED = {"kind": "signature", "signature": "question, options -> answer: int"}
UNTYPED = {"kind": "signature", "signature": "question, options -> answer"}
LIKE = ', such as "It may be the first."'
GUIDE = "; program.answer_format=guided makes that impossible."
ROOM = "; a larger program.max_tokens leaves them room."
READ = "; an answer must be in the format of the module's adapter, {}, and be one of the options."
UNPARSED = "20 of 20 replies without a legal answer"
ASKED = {"engine": "vllm", "name": "org/A"}


def said(*paths) -> str:
    """A report as the terminal shows it, on one line."""
    return " ".join(repr(medexam.report(*paths)).split())


def _first_table(text: str) -> str:
    """The table of scores of a report in Markdown."""
    return next(part for part in text.split("\n\n") if part.startswith("| "))


def _unanswered(reasons, reply="It may be the first."):
    """`extra` with these reasons in turn."""
    turns = iter(reasons * 20)
    return lambda _: {"status": Status.UNANSWERED, "answer": None, "reason": next(turns), "reply": reply}


@pytest.mark.parametrize(*read_table("causes"))
def test_the_commonest_cause_of_missing_answers_is_named_with_its_cure(
    make_run, program, reasons, reply, sentence
) -> None:
    assert sentence in said(make_run(program, "u", extra=_unanswered(reasons, reply)))


def test_who_abstains_misses_no_answer(make_run) -> None:
    assert "20 of 20" not in said(make_run(ZERO_SHOT, "u", extra=_unanswered([Reason.ABSTAINED], None)))


@pytest.mark.parametrize(("engine", "advised"), [({"guided_by": "prefill"}, True), ({"guided_by": "words"}, False)])
def test_guided_answers_are_advised_only_where_the_engine_enforces_them(make_run, engine, advised) -> None:
    path = make_run(ZERO_SHOT, "u", environment={"engine": engine})
    assert ("answer_format=guided makes that impossible" in said(path)) is advised


def test_what_a_report_finds(make_run) -> None:
    silent, right = make_run(ZERO_SHOT, "u"), make_run(GUIDED, "r")
    half, more = make_run({"kind": "longest"}, "rw"), make_run(GUIDED, "rrrw")
    found = said(silent, right, half)
    assert "zero_shot-guided is first in accuracy, but the form of the replies decides whether" in found
    level = "zero_shot-guided shows no difference from longest in accuracy: 75.0 % against 50.0 %, +25.0 ["
    assert level in said(more, half)


def test_only_a_complete_run_that_is_better_than_all_others_is_stressed(make_run, tmp_path) -> None:
    def stressed(*paths) -> list[str]:
        medexam.report(*paths, markdown=tmp_path / "report.md")
        scores = _first_table((tmp_path / "report.md").read_text())
        return [row.split(" | ")[0].strip("| ") for row in scores.splitlines() if "**" in row]

    wrong, most, half = make_run(ZERO_SHOT, "w"), make_run(GUIDED, "rrw"), make_run(THOUGHT, "rw")
    incomplete = make_run({"kind": "longest"}, "rrrrm")
    assert stressed(wrong, most, incomplete) == ["zero_shot-guided"]
    assert stressed(most, half) == []


def test_the_document_counts_failures_by_their_kind(make_run) -> None:
    messages = iter(
        [
            *("the server broke off after 12 tokens", "the server broke off after 340 tokens"),
            *("HTTP 500 from http://10.0.0.1:8000/v1: gone", "HTTP 500 from http://10.0.0.2:8000/v1: gone"),
            "HTTP 503 from http://10.0.0.1:8000/v1: overloaded",
            "the server broke off after 7 tokens",
        ]
        + ["connection refused"] * 14
    )
    kind = {"connection refused": "LMTransportError"}

    def failed(_) -> dict:
        message = next(messages)
        return {"failure": Failure(kind=kind.get(message, "LMServerError"), message=message)}

    path = make_run(ZERO_SHOT, "f", extra=failed)
    (document,) = json.loads(json.dumps(medexam.report(path).document()))
    assert [(one["boundary"], one["kind"], one["questions"]) for one in document["failures"]] == [
        ("network", "LMTransportError", 14),
        ("server", "LMServerError", 6),
    ]
    assert (document["status"], document["metrics"]["n"], document["metrics"]["failed"]) == ("incomplete", 0, 20)


def test_the_document_of_a_run(make_run) -> None:
    path = make_run(GUIDED, "rrw", language="es")
    (document,) = json.loads(json.dumps(medexam.report(path).document()))
    metrics = document.pop("metrics")
    assert {name: document[name] for name in ("dataset", "language", "program", "model", "status", "mixed")} == {
        "dataset": "headqa_v1",
        "language": "es",
        "program": "zero_shot-guided",
        "model": "SmolLM2-135M-Instruct",
        "status": "complete",
        "mixed": False,
    }
    assert (document["run_dir"], document["failures"], document["warnings"]) == (str(path), [], [])
    stored = json.loads((path / "metrics.json").read_text())
    assert (metrics["n"], metrics["right"], metrics["wrong"]) == (stored["n"], 14, 6) == (20, 14, 6)


def test_rows_hold_the_scores_in_the_order_of_the_options_and_the_passages(make_run, label_scores, passages) -> None:
    def rows(path):
        return pq.read_table(medexam.load_run(path).folder / "predictions.parquet").to_pylist()

    scored = rows(make_run(ZERO_SHOT, "r", extra=label_scores))
    assert scored[1]["option_scores"] == pytest.approx([-2.0, -2.0, -1.2, -2.0, -2.0])
    names = ("score_unit", "score_norm", "label_mass", "tied", "read_by", "right")
    assert [scored[2][name] for name in names] == ["nats", "sum", 0.8, 5, "label", True]
    found = rows(make_run({"kind": "retrieve_then_answer"}, "rw", extra=passages))
    names = ("passages", "passage_scores", "passages_cut", "right", "option_scores")
    assert [found[3][name] for name in names] == [["wiki/4", "wiki/0"], [4.0, 0.25], 40, False, None]
    assert [found[4][name] for name in names] == [[], [], 0, True, None]


# Which runs are ranked.


@pytest.fixture
def mixed(make_run):
    """A run whose first fifteen questions A answered and whose others B did."""
    models = iter(["org/A"] * 15 + ["org/B"] * 5)
    return make_run(THOUGHT, "r", run_id="both", model=ASKED, extra=lambda _: {"model": next(models)})


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"language": "es"}, "languages (en, es). `medexam compare` sets"),
        ({"years": [2013]}, "different questions. `medexam compare` sets"),
    ],
)
def test_runs_of_other_questions_are_not_ranked_and_the_reader_is_told(make_run, tmp_path, other, why) -> None:
    paths = [make_run(ZERO_SHOT, "w"), make_run(GUIDED, "r", **other)]
    medexam.report(*paths, markdown=tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text()
    assert why in text
    assert "**" not in _first_table(text)


def test_a_run_of_two_models_is_marked_wherever_it_is_shown_and_not_ranked(
    make_run, mixed, without_plots, tmp_path
) -> None:
    paths = [make_run(ZERO_SHOT, "w"), mixed]
    answers = "A (15) + B (5)"
    medexam.report(*paths, markdown=tmp_path / "both.md", html=tmp_path / "both.html")
    text = (tmp_path / "both.md").read_text()
    assert f"The run both mixes models and is not ranked: {answers}." in text
    assert "**" not in _first_table(text)
    assert answers in (tmp_path / "both.html").read_text()
    assert answers in (mixed / "report.md").read_text()
    document = medexam.report(*paths).document()[1]
    assert (document["mixed"], document["model"]) == (True, "A (15) + B (5)")


def test_an_accepted_change_of_model_is_marked_by_its_fingerprints(make_run) -> None:
    prints = iter(["1a2b3c4d"] * 12 + ["5e6f7a8b"] * 8)
    path = make_run(ZERO_SHOT, "r", model=ASKED, extra=lambda _: {"model": "org/A", "answered_by": next(prints)})
    assert medexam.load_run(path).model == "A 1a2b3c4d (12) + A 5e6f7a8b (8)"
    assert "A 1a2b3c4d (12) + A 5e6f7a8b (8)" in said(path)


@pytest.mark.parametrize("name", ["spec.json", "predictions.jsonl"])
def test_a_folder_that_lacks_a_file_is_refused_or_pending(make_run, name) -> None:
    path = make_run(ZERO_SHOT, "r")
    (path / name).unlink()
    if name == "spec.json":
        with pytest.raises(medexam.MedExamError, match="no run at"):
            medexam.load_run(path)
    else:
        assert medexam.load_run(path).metrics.missing == 20
