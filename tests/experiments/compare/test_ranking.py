"""Which runs are ranked: not those of other questions, and not those that several models answered."""

import re
from dataclasses import replace

import pytest

from medexam.companions.papers.paper import load_paper
from medexam.companions.papers.paper_tables import paper_tables
from medexam.experiments import comparison_report, run_report
from medexam.experiments.compare.baselines import contrast_runs
from medexam.experiments.compare.ranking import ranking_notes, rivals, why_unranked
from medexam.experiments.compare.runs import find_compared, run_names
from medexam.experiments.report.page.document import render_page
from medexam.experiments.report.plots.strategies import strategies_plot
from medexam.experiments.report.plots.style import looks
from medexam.experiments.report.tables import comparison
from medexam.experiments.store.stored_run import run_document
from medexam.experiments.track.payload import run_tags

ZERO_SHOT, THOUGHT, RANDOM = {"kind": "zero_shot"}, {"kind": "chain_of_thought"}, {"kind": "random"}
ASKED = {"engine": "vllm", "name": "org/A"}


def other(run, **changes):
    """The run as if it had asked something else."""
    dataset = {key: changes.pop(key) for key in ("name", "language", "explained") if key in changes}
    cell = run.record.cell.model_copy(update={"dataset": run.record.cell.dataset.model_copy(update=dataset)})
    return replace(run, record=replace(run.record, cell=cell, **changes))


@pytest.fixture
def pair(make_run):
    return [make_run(ZERO_SHOT, "rw", run_id="zero"), make_run(THOUGHT, "rrw", run_id="thought")]


@pytest.fixture
def mixed(make_run):
    """A run whose first questions A answered and whose others B did."""
    seen: list[str] = []

    def model(question):
        seen.append(question.key)
        return {"model": "org/A" if len(seen) <= 15 else "org/B"}

    return make_run(THOUGHT, "r", run_id="both", model=ASKED, extra=model)


def test_runs_of_the_same_questions_are_ranked(pair) -> None:
    assert (rivals(pair), ranking_notes(pair)) == ([True, True], [])
    assert not comparison(pair).best, "as many questions are right in both"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"language": "es"},
            r"languages \(en, es\)\. On the 20 questions .*: medexam compare \S+zero \S+thought",
        ),
        ({"name": "headqa_v2"}, r"different data sets \(headqa_sample, headqa_v2\).*run their specs on the same ones"),
        ({"explained": True}, r"different forms of the questions"),
        ({"questions": ("headqa-v1/2013/biology/1",)}, r"different questions\. On the 1 questions"),
        ({"questions": ("headqa-v1/1/biology/1",)}, r"different questions\. they share no question"),
    ],
)
def test_scores_of_other_questions_are_not_ranked(pair, changes, said) -> None:
    runs = [pair[0], other(pair[1], **changes)]
    assert rivals(runs) == [False, False]
    reason = why_unranked(runs)
    assert reason is not None
    assert re.search(said, reason), reason
    assert not comparison(runs).best
    text = comparison_report(runs)
    assert reason in text
    assert "**" not in text.split("\n\n")[1]


def test_a_picture_says_that_its_runs_are_not_ranked(pair) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure(layout="constrained")
    plot = strategies_plot(looks([pair[0], other(pair[1], language="es")]))
    assert plot is not None
    plot.draw(figure)
    assert figure.get_suptitle().endswith("Not ranked: the runs asked different languages (en, es).")


def test_three_runs_are_ranked_only_if_all_asked_the_same(pair, make_run) -> None:
    spanish = other(make_run(RANDOM, "w", run_id="spanish"), language="es")
    assert rivals([*pair, spanish]) == [False] * 3


def test_a_control_is_not_titled_with_another_runs_model(make_run) -> None:
    asked = make_run(ZERO_SHOT, "r", model=ASKED)
    table = comparison([asked, make_run(RANDOM, "w")])
    assert table.title == "demo · A (no model: random) · headqa_sample en"
    assert table.headers[:2] == ("Program", "n")


def test_a_run_of_two_models_is_marked_and_not_ranked(pair, mixed) -> None:
    runs = [pair[0], mixed]
    assert (mixed.mixed, rivals(runs)) == (True, [True, False])
    assert not comparison(runs).best
    assert comparison(runs).rows[1][1] == "A (15) + B (5)"
    assert run_names(runs) == ("zero_shot", "chain_of_thought (mixed models)")
    said = "15 answers of org/A, 5 of org/B"
    assert ranking_notes(runs) == [f"The run both mixes models and is not ranked: {said}."]
    assert said in comparison_report(runs)
    assert said in run_report(mixed, mixed.folder.read_predictions())
    assert said in "".join(render_page(runs))
    document = run_document(mixed)
    assert (document["mixed"], document["model"]) == (True, "A (15) + B (5)")
    tags = run_tags(mixed)
    assert tags["medexam.mixed_models"] == said
    assert said in tags["mlflow.note.content"]
    (table, *_) = paper_tables([mixed], load_paper("paper"))
    assert [run["mixed"] for run in table.document()["runs"]] == [True]


def test_an_accepted_change_of_model_is_marked_by_its_prints(make_run) -> None:
    prints = iter(["1a2b3c4d"] * 12 + ["5e6f7a8b"] * 8)
    run = make_run(ZERO_SHOT, "r", model=ASKED, extra=lambda _: {"model": "org/A", "answered_by": next(prints)})
    assert run.model == "A 1a2b3c4d (12) + A 5e6f7a8b (8)"
    assert "12 answers of org/A (print 1a2b3c4d), 8 of org/A (print 5e6f7a8b)" in ranking_notes([run])[0]


def test_a_mixed_run_is_no_baseline_unless_it_is_named_as_one(pair, mixed) -> None:
    runs_dir = mixed.folder.path.parent
    assert [folder.name for folder in find_compared([runs_dir])] == ["thought", "both", "zero"]
    named = [mixed.folder.path, pair[0].folder.path]
    assert [folder.name for folder in find_compared(named)] == ["both", "zero"]
    assert contrast_runs([mixed, pair[0]]) == []
