"""Chooses the questions that ship in the package, from the full HEAD-QA v1 in both languages.

    python bench/make_sample.py FOLDER_WITH_HEAD_JSON [TARGET]

Four questions of each of the 30 exams, by the same even sampling as `dataset.limit`; questions with a picture, with
two identical options, or whose text stands more than once in either language are not drawn.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from medexam.datasets.loading import load_rows
from medexam.datasets.locating import SHIPPED
from medexam.datasets.selection import sample_keys
from medexam.questions import Question

SIZE = 120
SEED = 0


def _clean(questions: list[Question]) -> set[str]:
    stems = Counter(question.stem for question in questions)
    return {
        question.key
        for question in questions
        if question.image is None
        and stems[question.stem] == 1
        and len({option.text for option in question.options}) == len(question.options)
    }


def main(folder: Path, target: Path = SHIPPED / "sample") -> None:
    """Write HEAD.json and HEAD_EN.json with the chosen questions to `target`."""
    readings = {language: load_rows("headqa_v1", language, folder) for language in ("es", "en")}
    by_language = {language: [row.question for row in reading.rows] for language, reading in readings.items()}
    clean = set.intersection(*(_clean(questions) for questions in by_language.values()))
    possible = [question for question in by_language["es"] if question.key in clean]
    exams = ((question.exam.discipline, question.exam.year or 0, question.key) for question in possible)
    chosen = sample_keys(exams, SIZE, SEED)
    numbers = {(question.exam.name, str(question.number)) for question in possible if question.key in chosen}
    for name in ("HEAD.json", "HEAD_EN.json"):
        document = json.loads((folder / name).read_text(encoding="utf-8"))
        for exam in document["exams"].values():
            exam["data"] = [entry for entry in exam["data"] if (exam["name"], entry["qid"]) in numbers]
        (target / name).write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
