"""A program that cannot answer a benchmark of one's own is refused before anything is asked."""

import pytest

from medexam.errors import SpecError
from medexam.experiments import plan_experiment

SUMS = """
from medexam import Question
from medexam.benchmarks.choice.benchmark import OwnChoiceBenchmark
from medexam.benchmarks.words.spans import ShortAnswerBenchmark
from medexam.datasets import make_exam_set
from medexam.questions import TaskSet
from medexam.questions import Task, TaskGold


class Sums(OwnChoiceBenchmark):
    def load(self, spec):
        rows = [(Question.of(f"{n} + 1 = ?", [str(n), str(n + 1)], key=f"sums/{n}"), 2) for n in range(4)]
        return make_exam_set(spec, rows, source="made by code", version="1")


class Words(ShortAnswerBenchmark):
    def load(self, spec):
        task = Task(key="words/1", group="easy", language="en", question="1 + 1?")
        known = {"name": spec.called, "language": "en", "version": "1", "source": "code", "fingerprint": "0" * 64}
        return TaskSet(
            **known, golds_fingerprint="1" * 64, questions=(task,), golds={task.key: TaskGold(answers=("2",))}
        )
"""


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "mine.py").write_text(SUMS, encoding="utf-8")
    (tmp_path / "replies.yaml").write_text('{"*": "2"}', encoding="utf-8")

    def call(benchmark, program):
        document = {
            "name": "fit",
            "dataset": f"{tmp_path / 'mine.py'}:{benchmark}",
            "model": {"engine": "scripted", "path": str(tmp_path / "replies.yaml")},
            "program": program,
        }
        return plan_experiment(document, {}, runs_dir=tmp_path / "runs")

    return call


@pytest.mark.parametrize(
    ("benchmark", "program"), [("Sums", "zero_shot"), ("Sums", "longest"), ("Words", "short_answer")]
)
def test_what_fits_is_planned(plan, benchmark, program) -> None:
    (cell,) = plan(benchmark, program).cells
    assert len(cell.question_set.questions) == {"Sums": 4, "Words": 1}[benchmark]


@pytest.mark.parametrize(
    ("benchmark", "program", "says"),
    [
        ("Sums", "short_answer", "answers in words, and the questions of Sums have numbered options: set program.kind"),
        ("Sums", "by_format", "answers in words, and the questions of Sums have numbered options"),
        ("Words", "zero_shot", "chooses an option, and the questions of Words are answered in words: set program.kind"),
        ("Words", "longest", "chooses an option, and the questions of Words"),
        ("Words", "by_format", "has no prompt for the group easy of Words: it has prompts for true_false"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_way_out(plan, benchmark, program, says) -> None:
    with pytest.raises(SpecError, match=says):
        plan(benchmark, program)
