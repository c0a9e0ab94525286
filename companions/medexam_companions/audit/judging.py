"""Kinds of errors, as a model judges them: wrong answers as the questions of a run, and people's kinds beside its own.

The judge is an ordinary program, so that its prompt is planned, its replies kept and its tokens counted as any run's.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from medexam import Prediction
from medexam.benchmarks import WordsBenchmark
from medexam.errors import DatasetError, RunFolderError, SpecError
from medexam.files import write_whole
from medexam.inputs import read_regular
from medexam.metrics import cohens_kappa
from medexam.questions import Task, TaskGold, TaskSet
from medexam.specs import DatasetSpec
from medexam_companions.audit.folder import CODE, shown_digest
from medexam_companions.audit.items import AuditItem
from medexam_companions.audit.review_sheets import COMMENT, read_sheet_rows, render_sheet

BENCHMARK = "error_kinds"
"""The name of the benchmark in a spec."""
ANSWERS = "wrong_answers.jsonl"
INSTRUCTIONS = "judge.md"
SHEET = "sheet.csv"
CATEGORY = "category"
SHIPPED = Path(__file__).with_name(INSTRUCTIONS)
"""The judge's instructions; a file of one's own has its kinds in the same form."""
_KIND = re.compile(r"^- ([\w-]+):", re.MULTILINE)
_COLUMNS = (CODE, "question", "reference", "answer", CATEGORY, COMMENT)


@dataclass(frozen=True)
class WrongAnswer:
    """One answer that a measure calls wrong."""

    code: str
    """Names it on the sheet, and its run nowhere there."""
    run: str
    key: str
    """The question's key."""
    question: str
    reference: str
    reply: str

    def to_task(self) -> Task:
        """Return what the judge is asked."""
        text = f"Question:\n{self.question}\n\nRight answer:\n{self.reference}\n\nWrong answer:\n{self.reply}"
        return Task(key=self.code, group=self.run, language="en", question=text)


@dataclass(frozen=True)
class KindAgreement:
    """How far two judges choose the same kinds."""

    judges: tuple[str, str]
    n: int
    """Answers that both judged."""
    same: float | None
    """The share with the same kind; None if `n` is 0."""
    kappa: float | None
    """Cohen's; None if `n` is 0 or all are of one kind."""


class ErrorKinds(WordsBenchmark):
    """Wrong answers in the groups of their runs; each kind of error is a measure, its share of the answers."""

    def load(self, spec: DatasetSpec) -> TaskSet:
        """Load the wrong answers of the folder `spec.path`; raises `DatasetError` if they cannot be read."""
        if spec.path is None:
            raise DatasetError("dataset.path must name the folder that `medexam audit judge` made")
        answers = read_wrong_answers(spec.path)
        fingerprint = hashlib.sha256(read_regular(spec.path / ANSWERS)).hexdigest()
        return TaskSet(
            name=spec.called,
            language="en",
            version="1",
            source=str(spec.path),
            fingerprint=fingerprint,
            golds_fingerprint=fingerprint,
            questions=tuple(answer.to_task() for answer in answers),
            golds={answer.code: TaskGold() for answer in answers},
        )

    def score(self, items: TaskSet, predictions: Mapping[str, Prediction]) -> Any:
        """Compute the share of each kind among the judged answers, over all runs and by run."""
        judged = {key: said.text for key, said in predictions.items() if said.text is not None}
        kinds = [kind for kind, _ in Counter(judged.values()).most_common()]
        scores = {kind: {key: float(verdict == kind) for key, verdict in judged.items()} for kind in kinds}
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

    A folder with the same answers is continued, and its sheets stay. Raises `RunFolderError` if it holds others, or
    cannot be written.
    """
    answers = [_name(item) for item in items]
    lines = "".join(json.dumps(asdict(answer), ensure_ascii=False) + "\n" for answer in answers)
    spec = {
        "name": "judge",
        "description": f"A model says what kind of error each wrong answer is, by {INSTRUCTIONS}.",
        "dataset": {"name": BENCHMARK, "path": str(folder.absolute())},
        "model": model,
        "program": {
            "name": "judge",
            "answer_format": "guided",
            "steps": [
                {
                    "ask": f"question -> answer: Literal[{', '.join(map(repr, read_kinds(instructions)))}]",
                    "instructions": str((folder / INSTRUCTIONS).absolute()),
                }
            ],
        },
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        known = folder / ANSWERS
        if known.exists() and read_regular(known).decode() != lines:
            raise RunFolderError(f"{folder} holds other wrong answers: choose a new folder with --out")
        if not known.exists():
            write_whole(known, lines)
            rows = [(answer.code, answer.question, answer.reference, answer.reply, "", "") for answer in answers]
            (folder / SHEET).write_bytes(render_sheet(_COLUMNS, sorted(rows)))
        write_whole(folder / INSTRUCTIONS, instructions)
        write_whole(folder / "judge.yaml", json.dumps(spec, ensure_ascii=False, indent=2) + "\n")
    except OSError as error:
        raise RunFolderError(
            f"cannot write {folder} ({error.strerror or error}): choose another folder with --out"
        ) from None
    return folder / "judge.yaml"


def read_wrong_answers(folder: Path) -> list[WrongAnswer]:
    """Read the wrong answers of a folder; raises `DatasetError` if that is not possible."""
    try:
        lines = read_regular(folder / ANSWERS).decode().splitlines()
        return [WrongAnswer(**json.loads(line)) for line in lines]
    except (OSError, ValueError, TypeError) as error:
        raise DatasetError(f"{folder} holds no wrong answers ({error}): make it by `medexam audit judge`") from None


def read_people(folder: Path, kinds: Sequence[str]) -> dict[str, dict[str, str]]:
    """Map each sheet of the folder with a filled-in category to code and kind.

    Raises `DatasetError` naming the line of an unknown code or kind.
    """
    codes = {answer.code for answer in read_wrong_answers(folder)}
    people: dict[str, dict[str, str]] = {}
    for path in sorted(folder.glob("*.csv")):
        for line, row in read_sheet_rows(path, (CODE, CATEGORY)):
            kind = row[CATEGORY].lower()
            if row[CODE] not in codes:
                raise DatasetError(f"{path}, line {line}: no wrong answer has the code {row[CODE]!r}")
            if kind and kind not in kinds:
                raise DatasetError(
                    f"{path}, line {line}: {kind!r} is not a kind of error: write one of {', '.join(kinds)}"
                )
            if kind:
                people.setdefault(path.stem, {})[row[CODE]] = kind
    return people


def compare_judges(judges: Mapping[str, Mapping[str, str]], kinds: Sequence[str]) -> list[KindAgreement]:
    """Measure the agreement of every two judges, the first with each person first."""
    return [_agreement(pair, judges[pair[0]], judges[pair[1]], kinds) for pair in combinations(judges, 2)]


def _agreement(
    pair: tuple[str, str], first: Mapping[str, str], second: Mapping[str, str], kinds: Sequence[str]
) -> KindAgreement:
    places = {kind: place for place, kind in enumerate(kinds)}
    codes = [(places[kind], places[second[code]]) for code, kind in first.items() if code in second]
    if not codes:
        return KindAgreement(pair, 0, None, None)
    table = np.zeros((len(kinds), len(kinds)))
    for one, other in codes:
        table[one, other] += 1
    one_kind = len({place for both in codes for place in both}) == 1
    return KindAgreement(
        pair, len(codes), float(np.trace(table) / table.sum()), None if one_kind else cohens_kappa(table)
    )


def _name(item: AuditItem) -> WrongAnswer:
    digest = hashlib.sha256(f"{item.run}\0{item.key}\0{shown_digest(item)}".encode()).hexdigest()[:10]
    return WrongAnswer(digest, item.run, item.key, item.question, item.reference, item.reply)
