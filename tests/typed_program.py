"""A program as a user of the package writes it; `test_types_for_users.py` has type checkers read it."""

from pathlib import Path

import medexam
from medexam import MedExamError, Prediction, Question
from medexam.specs import DatasetSpec, ModelSpec


def accuracies(folder: Path) -> dict[str, float | None]:
    runs = medexam.run(
        "headqa_sample",
        program=["zero_shot", {"kind": "few_shot", "answer_format": "guided"}, "longest"],
        model=ModelSpec(engine="embedded"),
        dataset=DatasetSpec(years=(2016,)),
        limit=5,
        dataset__language="es",
        runs_dir=folder,
        progress=False,
    )
    return {run.id: run.accuracy for run in runs}


def replies(run_id: str) -> list[str | None]:
    run = medexam.load_run(run_id)
    found: list[Prediction] = list(run.predictions.values())
    return [prediction.reply for prediction in found]


def look() -> tuple[str, float, list[str]]:
    questions = medexam.load_questions("headqa_sample", years=2016)
    asked: Question = questions[0]
    keys: list[str] = [question.key for question in questions]
    own = Question.of("Which vitamin prevents scurvy?", ["Vitamin A", "Vitamin C"])
    try:
        said = repr(medexam.compare(*medexam.list_runs()[:2]))
    except MedExamError as error:
        said = str(error)
    model = medexam.lm("embedded")
    total: float = model.score("Scurvy is a lack of vitamin", [" C", " D"])[0].total
    chosen: str = model.choose("Is scurvy a lack of vitamin C?", ["yes", "no"])
    return said, total, [asked.stem, own.options[0].text, chosen, *keys]
