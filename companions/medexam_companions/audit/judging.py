"""Kinds of errors, as a model judges them: wrong answers as the questions of a run, and people's kinds beside its own.

The judge is an ordinary program, so that its prompt is planned, its replies stored and its tokens counted as any run's.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam import Prediction
from medexam.errors import DatasetError, RunFolderError, SpecError
from medexam.files import write_whole
from medexam.measures import WordsBenchmark
from medexam.questions import Task, TaskGold, TaskSet
from medexam.specs import DatasetSpec
from medexam_companions.audit.folder import CODE
from medexam_companions.audit.items import AuditItem
from medexam_companions.audit.review_sheets import COMMENT, load_review_sheets, render_sheet

ANSWERS = "wrong_answers.jsonl"
INSTRUCTIONS = "judge.md"
SHEET = "sheet.csv"
CATEGORY = "category"
SHIPPED = Path(__file__).with_name(INSTRUCTIONS)
"""The judge's instructions; a file of one's own has its kinds in the same form."""
_KIND = re.compile(r"^- ([\w-]+):", re.MULTILINE)
_SHOWN = (CODE, "question", "reference", "reply")
"""What the judge and people see of a wrong answer; the code names it, and its run nowhere there."""


class ErrorKinds(WordsBenchmark):
    """Wrong answers in the groups of their runs; each kind of error is a measure, its share of the answers."""

    def load(self, spec: DatasetSpec) -> TaskSet:
        """Load the wrong answers of the folder `spec.path`; raises `DatasetError` if they cannot be read."""
        if spec.path is None:
            raise DatasetError("dataset.path must name the folder that `medexam audit judge` made")
        answers = _read_answers(spec.path)
        fingerprint = hashlib.sha256((spec.path / ANSWERS).read_bytes()).hexdigest()
        text = "Question:\n{question}\n\nRight answer:\n{reference}\n\nWrong answer:\n{reply}"
        return TaskSet(
            name=spec.called,
            language="en",
            version="1",
            source=str(spec.path),
            fingerprint=fingerprint,
            golds_fingerprint=fingerprint,
            questions=tuple(Task(each[CODE], each["run"], "en", text.format_map(each)) for each in answers),
            golds={each[CODE]: TaskGold() for each in answers},
        )

    def score(self, items: TaskSet, predictions: Mapping[str, Prediction]) -> Any:
        """Compute the share of each kind among the judged answers, over all runs and by run."""
        verdicts = {key: each.text for key, each in predictions.items() if each.text is not None}
        kinds = [kind for kind, _ in Counter(verdicts.values()).most_common()]
        scores = {kind: {key: float(verdict == kind) for key, verdict in verdicts.items()} for kind in kinds}
        return self.score_means(items, predictions, scores)


def choose_wrong(items: Sequence[AuditItem], below: float) -> list[AuditItem]:
    """Choose the answers whose first measure is below `below`; raises `SpecError` if there is none."""
    wrong = [item for item in items if item.scores and next(iter(item.scores.values())) < below]
    if not wrong:
        raise SpecError(f"none of the {len(items):,} answers scores below {below:g}: there is no error to judge")
    return wrong


def read_kinds(instructions: str) -> tuple[str, ...]:
    """Read the kinds of errors that instructions list, a line each, `- name: what it is`.

    Raises `SpecError` for fewer than two.
    """
    kinds = tuple(dict.fromkeys(_KIND.findall(instructions)))
    if len(kinds) < 2:
        raise SpecError(
            "the instructions list no kinds of errors: write one line for each kind, such as `- reading: misread`"
        )
    return kinds


def write_judging(folder: Path, items: Sequence[AuditItem], instructions: str, model: str) -> Path:
    """Write wrong answers, instructions, a sheet for people and the spec of the judge's run; return the spec's path.

    A folder with the same answers is continued, and its sheets stay. Raises `RunFolderError` if it holds others.
    """
    answers = [_describe(item) for item in items]
    lines = "".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)
    ask = f"question -> answer: Literal[{', '.join(map(repr, read_kinds(instructions)))}]"
    spec = {
        "name": "judge",
        "dataset": {"name": "error_kinds", "path": str(folder.absolute())},
        "model": model,
        "program": {
            "name": "judge",
            "answer_format": "guided",
            "steps": [{"ask": ask, "instructions": str((folder / INSTRUCTIONS).absolute())}],
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    stored = folder / ANSWERS
    if stored.exists() and stored.read_bytes().decode() != lines:
        raise RunFolderError(f"{folder} holds other wrong answers: choose a new folder with --out")
    if not stored.exists():
        write_whole(stored, lines)
        rows = sorted([*(answer[name] for name in _SHOWN), "", ""] for answer in answers)
        (folder / SHEET).write_bytes(render_sheet((*_SHOWN, CATEGORY, COMMENT), rows))
    write_whole(folder / INSTRUCTIONS, instructions)
    write_whole(folder / "judge.yaml", json.dumps(spec, ensure_ascii=False, indent=2) + "\n")
    return folder / "judge.yaml"


def _describe(item: AuditItem) -> dict[str, str]:
    code = hashlib.sha256(f"{item.run}\0{item.key}\0{item.digest}".encode()).hexdigest()[:10]
    words = {"question": item.question, "reference": item.reference, "reply": item.reply}
    return {CODE: code, "run": item.run, "key": item.key, **words}


def _read_answers(folder: Path) -> list[dict[str, str]]:
    try:
        answers = [json.loads(line) for line in (folder / ANSWERS).read_bytes().decode().splitlines()]
        return [{name: str(answer[name]) for name in (*_SHOWN, "run")} for answer in answers]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DatasetError(f"{folder} holds no wrong answers ({error}): make it by `medexam audit judge`") from None


def read_people(folder: Path, kinds: Sequence[str]) -> dict[str, Mapping[str, str]]:
    """Map each sheet of the folder with a filled-in category to code and kind.

    Raises `DatasetError` naming the line of an unknown code or kind.
    """
    reviews = load_review_sheets(
        sorted(folder.glob("*.csv")),
        CODE,
        (CATEGORY,),
        {answer[CODE] for answer in _read_answers(folder)},
        {kind.lower(): kind for kind in kinds},
    )
    return {review.reviewer: review.marks[CATEGORY] for review in reviews if review.marks[CATEGORY]}
