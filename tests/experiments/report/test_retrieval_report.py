"""Tables, Markdown, plots, Parquet and MLflow say what passages tell and flip; runs without them say nothing of it."""

import dataclasses
import re

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from medexam.benchmarks import find_benchmark
from medexam.benchmarks.choice import benchmark as choice
from medexam.benchmarks.choice.tables import exam_values
from medexam.cli import app
from medexam.experiments import build_pictures, comparison_report, write_pictures
from medexam.experiments.compare.baselines import contrast_runs
from medexam.experiments.report.contrast_tables import contrast_table, flipped_tables
from medexam.experiments.report.plots.relevance import draw_relevance
from medexam.experiments.report.plots.style import looks
from medexam.experiments.store.run_folder import PARQUET
from medexam.predictions import RetrievedPassage, evidence_tables
from medexam.specs import DatasetSpec
from medexam.tables import coefficient, p_value
from stored_runs import made_up_exams
from terminal import draw

ZERO_SHOT = {"kind": "zero_shot"}
GUIDED = {"kind": "zero_shot", "answer_format": "guided"}
REASONING = {"kind": "chain_of_thought"}
RETRIEVING = {"kind": "retrieve_then_answer"}
LIKELIHOOD = {"kind": "likelihood"}


def _found(question) -> dict:
    """Two passages: the later the question stands in its exam, the more relevant; the fifth question finds none."""
    if question.number == 5:
        return {"passages": (), "passages_cut": 0}
    source = "books" if question.number % 2 else "wiki"
    score = question.number + (0.5 if question.exam.year == 2015 else 0.0)
    first = RetrievedPassage(id=f"{source}/{question.number}", source=source, score=score)
    second = RetrievedPassage(id="wiki/0", source="wiki", score=0.25)
    return {"passages": (first, second), "passages_cut": 40 if question.number == 4 else 0}


@pytest.fixture
def data_set(exam_questions, answer_key, monkeypatch):
    """The questions of `make_run` in the place of the data set on disk."""
    exams = made_up_exams(exam_questions, answer_key)
    monkeypatch.setattr(choice, "load_exam_set", lambda spec: exams)


def _programs(runs) -> dict[str, list[str]]:
    """Baseline -> the programs that are compared with it."""
    return {
        contrast.baseline.program: [against.run.program for against in contrast.against]
        for contrast in contrast_runs(runs)
    }


def test_the_tables_of_one_run(make_run) -> None:
    run = make_run(RETRIEVING, "wwrru", extra=_found)
    (quartiles, caption), (sources, note) = evidence_tables(run.metrics)
    assert [table.title for table in (quartiles, sources)] == ["Relevance quartiles", "Passages by source"]
    assert [row[:3] for row in quartiles.rows] == [
        ("1, lowest", "1 to 1.5", "4"),
        ("2", "2 to 2.5", "4"),
        ("3", "3 to 3.5", "4"),
        ("4, highest", "4 to 4.5", "4"),
    ]
    assert [row[3].split()[0] for row in quartiles.rows] == ["0.0", "0.0", "100.0", "100.0"]
    assert caption.startswith("r = 0.87 [0.66, 0.96], p < 0.001, n = 16:")
    assert "quartiles 1.875, 2.75, 3.625 (numpy.quantile)" in caption
    assert "found nothing: 4." in caption
    assert [row[:4] for row in sources.rows] == [("wiki", "24", "75.0", "8"), ("books", "8", "25.0", "8")]
    assert "cut to fit the context: 4." in note


def test_a_correlation_that_cannot_be_told(make_run) -> None:
    (_, caption), _ = evidence_tables(make_run(RETRIEVING, "r", extra=_found).metrics)
    assert caption.startswith("The score's correlation with being right cannot be computed, n = 16.")


@pytest.mark.parametrize(("p", "text"), [(0.0, "<0.001"), (0.00099, "<0.001"), (0.0312, "0.031"), (1.0, "1.000")])
def test_small_probabilities_are_bounded(p, text) -> None:
    assert p_value(p) == text


def test_a_coefficient_has_no_minus_before_a_zero() -> None:
    assert [coefficient(value) for value in (-0.004, 0.07, -0.126)] == ["0.00", "0.07", "-0.13"]


def test_the_tables_fit_a_terminal(make_run, data_set) -> None:
    runs = [make_run(ZERO_SHOT, "rw"), make_run(RETRIEVING, "rwu", extra=_found)]
    text = draw(*runs[1].benchmark.details(runs[1].metrics), *map(contrast_table, contrast_runs(runs)), width=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "…" not in text
    assert "Against zero_shot · SmolLM2-135M-Instruct · headqa_sample en" in text


def test_runs_that_asked_other_texts_are_not_contrasted(make_run) -> None:
    runs = [
        dataclasses.replace(run, record=dataclasses.replace(run.record, schema=2, dataset_fingerprint=letter * 64))
        for run, letter in ((make_run(ZERO_SHOT, "rw"), "a"), (make_run(RETRIEVING, "r", extra=_found), "b"))
    ]
    assert contrast_runs(runs) == []


def test_a_run_is_compared_with_the_program_that_asks_alike(make_run, data_set) -> None:
    plain = [make_run(program, "rw") for program in (ZERO_SHOT, GUIDED, REASONING, LIKELIHOOD)]
    with_passages = [
        make_run(program, "r", extra=_found)
        for program in (
            RETRIEVING,
            RETRIEVING | {"k": 3},
            RETRIEVING | {"answer_format": "guided"},
            RETRIEVING | {"then": "chain_of_thought"},
            LIKELIHOOD | {"context": "retrieved"},
        )
    ]
    assert _programs([*with_passages, *plain]) == {
        "zero_shot": ["retrieve_then_answer-medcpt", "retrieve_then_answer-medcpt-k3"],
        "zero_shot-guided": ["retrieve_then_answer-guided-medcpt"],
        "chain_of_thought": ["retrieve_then_answer-chain_of_thought-medcpt"],
        "likelihood-option_text": ["likelihood-option_text-medcpt"],
    }


def test_where_none_asks_alike_every_run_of_the_model_is_a_baseline(make_run, data_set) -> None:
    runs = [make_run(GUIDED, "rw"), make_run(REASONING, "rw"), make_run(RETRIEVING, "r", extra=_found)]
    assert _programs(runs) == {
        "zero_shot-guided": ["retrieve_then_answer-medcpt"],
        "chain_of_thought": ["retrieve_then_answer-medcpt"],
    }


def test_another_model_language_or_a_control_is_no_baseline(make_run, data_set) -> None:
    other_model = make_run(ZERO_SHOT, "r", model={"name": "some/other"})
    spanish = make_run(ZERO_SHOT, "r", language="es")
    control = make_run({"kind": "random"}, "r")
    label = make_run(LIKELIHOOD | {"read": "label", "context": "retrieved"}, "r", extra=_found)
    assert contrast_runs([other_model, spanish, control, make_run(RETRIEVING, "r", extra=_found), label]) == []
    assert contrast_runs([make_run({"kind": "relevance"}, "r"), control]) == []


def test_the_flips_of_two_runs(make_run, data_set) -> None:
    runs = [make_run(ZERO_SHOT, "rrwuf"), make_run(RETRIEVING, "rwrwr", extra=_found)]
    (contrast,) = contrast_runs(runs)
    table, caption = contrast_table(contrast)
    assert table.title == f"Against {runs[0].title}"
    assert table.rows == (("retrieve_then_answer-medcpt", "16", "4", "4", "4", "4", "1.000"),)
    assert caption.endswith("missing in either run: 4.")
    lost, gained = flipped_tables(contrast.against[0])
    assert lost.title == "retrieve_then_answer-medcpt: right to wrong (4)"
    assert lost.rows[0] == ("`headqa-v1/2013/biology/2`", "`wiki/2`, `wiki/0`")
    assert gained.rows[0] == ("`headqa-v1/2013/biology/3`", "`books/3`, `wiki/0`")


def test_questions_that_one_run_was_not_asked_are_no_flips(make_run, data_set) -> None:
    plain, retrieving = make_run(ZERO_SHOT, "r"), make_run(RETRIEVING, "w", extra=_found)
    half = dataclasses.replace(plain, record=dataclasses.replace(plain.record, questions=plain.record.questions[:10]))
    flips = contrast_runs([half, retrieving])[0].against[0].flips
    assert (flips.n, flips.left_out) == (10, 0)
    none = dataclasses.replace(plain, record=dataclasses.replace(plain.record, questions=("another",)))
    assert contrast_runs([none, retrieving]) == []


def test_ten_questions_of_each_flip_are_named(make_run, data_set) -> None:
    runs = [make_run(ZERO_SHOT, "r"), make_run(RETRIEVING, "w", extra=_found)]
    (lost,) = flipped_tables(contrast_runs(runs)[0].against[0])
    assert lost.title.endswith("right to wrong (first 10 of 20)")
    assert len(lost.rows) == 10
    assert lost.rows[4] == ("`headqa-v1/2013/biology/5`", "-")


def test_the_markdown_of_one_run(make_run) -> None:
    report = (make_run(RETRIEVING, "rwr", extra=_found).folder.path / "report.md").read_text()
    assert "\n## Relevance quartiles\n\n| Quartile | Score | n | Accuracy |\n" in report
    assert "\n## Passages by source\n\n| Source | Passages |" in report
    plain = (make_run(ZERO_SHOT, "rw").folder.path / "report.md").read_text()
    assert "Relevance" not in plain
    assert "Passages" not in plain


def test_the_markdown_of_several_runs(make_run, data_set, tmp_path) -> None:
    runs = [make_run(ZERO_SHOT, "rrw"), make_run(RETRIEVING, "rwr", extra=_found)]
    text = comparison_report(runs, contrast_runs(runs))
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    assert headings[1:] == [
        f"Against {runs[0].title}",
        "retrieve_then_answer-medcpt: right to wrong (7)",
        "retrieve_then_answer-medcpt: wrong to right (6)",
        "Runs",
    ]
    for table in re.findall(r"(?m)(?:^\|.*\|$\n?)+", text):
        assert len({line.count("|") for line in table.splitlines()}) == 1
    assert "Against" not in comparison_report(runs)


def test_the_command_prints_the_tables(make_run, data_set, tmp_path) -> None:
    runs = [make_run(ZERO_SHOT, "rrw"), make_run(RETRIEVING, "rwr", extra=_found)]
    one = CliRunner().invoke(app, ["report", str(runs[1].folder.path)])
    assert one.exit_code == 0
    assert "Relevance quartiles" in one.output
    assert "Passages by source" in one.output
    target = tmp_path / "both.md"
    both = CliRunner().invoke(app, ["report", *(str(run.folder.path) for run in runs), "--markdown", str(target)])
    assert both.exit_code == 0
    assert "Against zero_shot" in both.output
    assert "### retrieve_then_answer-medcpt: right to wrong (7)" in target.read_text()


def test_the_plot_is_written_where_a_run_has_passages(make_run, tmp_path) -> None:
    runs = [make_run(ZERO_SHOT, "rrw"), make_run(RETRIEVING, "rw", extra=_found)]
    paths = write_pictures(build_pictures(runs), tmp_path / "plots", "--plots")
    assert [path.stem for path in paths][-2:] == ["accuracy_by_discipline", "relevance"]
    assert paths[-1].read_bytes().startswith(b"\x89PNG")
    empty = make_run(RETRIEVING | {"k": 1}, "rw", extra=lambda question: {"passages": ()})
    assert "relevance" not in [
        path.stem for path in write_pictures(build_pictures([empty]), tmp_path / "empty", "--plots")
    ]


def test_the_plot_shows_each_quartile_of_each_run(make_run) -> None:
    from matplotlib.figure import Figure

    plain = make_run(ZERO_SHOT, "r")
    rising = make_run(RETRIEVING, "wwrru", extra=_found)
    falling = make_run(RETRIEVING | {"k": 3}, "rrwwu", extra=_found)
    axes = Figure().add_subplot()
    drawn_runs = looks([plain, rising, falling])
    draw_relevance(axes, drawn_runs)
    drawn = [container.lines[0] for container in axes.containers]
    assert [line.get_ydata().tolist() for line in drawn] == [[0, 0, 100, 100], [100, 100, 0, 0]]
    assert [line.get_color() for line in drawn] == [look.color for look in drawn_runs[1:]]
    assert "n = 16, r = 0.87" in axes.containers[0].get_label()


def test_parquet_holds_the_passages(make_run) -> None:
    assert {"passages", "passage_scores", "passages_cut"} <= {
        name for name, _ in find_benchmark(DatasetSpec(name="headqa_v1")).columns({})
    }
    rows = pq.read_table(make_run(RETRIEVING, "r", extra=_found).folder.path / PARQUET).to_pylist()
    names = ("passages", "passage_scores", "passages_cut")
    assert [rows[3][name] for name in names] == [["wiki/4", "wiki/0"], [4.0, 0.25], 40]
    assert [rows[4][name] for name in names] == [[], [], 0]
    plain = pq.read_table(make_run(ZERO_SHOT, "r").folder.path / PARQUET).to_pylist()
    assert [plain[0][name] for name in names] == [None] * 3


def test_mlflow_is_told(make_run) -> None:
    found = make_run(RETRIEVING, "wwrru", extra=_found).metrics
    told = exam_values(found)
    correlation = found.retrieval.score_correctness
    low, high = correlation.interval
    names = [f"retrieval_score_correctness{end}" for end in ("", "_low", "_high")]
    assert [told[name] for name in names] == [correlation.r, low, high]
    for metrics in (make_run(ZERO_SHOT, "rw").metrics, make_run(RETRIEVING | {"k": 1}, "r", extra=_found).metrics):
        assert not set(names) & set(exam_values(metrics))
