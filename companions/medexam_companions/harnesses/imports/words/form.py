"""Which question in words a sample is of, and the prediction that it stands for.

A question is found by its key, else by its text within its format, and among questions of the same text by the options
or the answer that is shown with it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam import Prediction
from medexam.predictions import Reason, Status
from medexam.questions import Task, TaskGold, TaskSet
from medexam_companions.harnesses.imports.account import ReadAnswers
from medexam_companions.harnesses.imports.answers import told_call
from medexam_companions.harnesses.imports.matching import MANY, MatchReport, loose, match_samples
from medexam_companions.harnesses.imports.samples import HarnessSample, Results, ResultsError


class WordsForm:
    """Matches and reads samples of questions that are answered in words."""

    def __init__(self, items: TaskSet) -> None:
        tasks = items.questions
        self._by_key = {task.key: task for task in tasks}
        self._by_text: defaultdict[str, list[Task]] = defaultdict(list)
        for task in tasks:
            self._by_text[loose(task.question)].append(task)

    def match(self, samples: Iterable[HarnessSample]) -> MatchReport:
        """Match each sample; samples of several questions alike are taken in order if there are as many."""
        return match_samples(samples, self._find)

    def read(
        self,
        path: Path,
        results: Results,
        matched: MatchReport,
        items: TaskSet,
        program: str,
        spec_digest: str,
        may_be_key: bool,
    ) -> ReadAnswers:
        """Make the predictions of the matched questions, which `items` holds.

        Raises `ResultsError` if all answers are what the data expect and `may_be_key`.
        """
        predictions = [
            make_words_prediction(matched.pairs[task.key], task, results, program=program, spec_digest=spec_digest)
            for task in items.questions
        ]
        if may_be_key and len(predictions) >= MANY and all(_is_gold(each, items.golds) for each in predictions):
            raise ResultsError(
                f"{path}: all {len(predictions):,} answers are the expected ones, so the column answer may be the "
                "key: name the column of the model's answers, such as --measure prediction, or --measure answer if "
                "this is the one"
            )
        other_gold = sum(is_other_text(matched.pairs[task.key], items.golds[task.key]) for task in items.questions)
        return ReadAnswers(predictions, unreadable=0, other_gold=other_gold)

    def _find(self, sample: HarnessSample) -> tuple[str, list[Task]]:
        for name in sample.ids:
            task = self._by_key.get(name)
            if task is not None and (sample.stem in (None, name) or loose(task.question) in loose(str(sample.stem))):
                return "key", [task]
        if sample.stem is None:
            return "", []
        tasks = [task for task in self._by_text.get(loose(sample.stem), ()) if sample.group in (None, task.group)]
        for texts, field in ((sample.options, "options"), ((sample.given_answer or "",), "given_answer")):
            if len(tasks) > 1 and any(texts):
                signature = sorted(map(loose, texts))
                tasks = [task for task in tasks if signature == _signature(getattr(task, field))]
        return "text", tasks


def _signature(texts: str | Sequence[str]) -> list[str]:
    return sorted(map(loose, [texts] if isinstance(texts, str) else texts))


def _is_gold(prediction: Prediction, golds: Mapping[str, TaskGold]) -> bool:
    """Return whether an answer is the text that is expected."""
    texts = golds[prediction.question].answers
    return loose(prediction.text or "") in {*map(loose, texts), loose(" ".join(texts))}


def is_other_text(sample: HarnessSample, gold: TaskGold) -> bool:
    """Return whether what the file expects holds none of what our data expect; False if either says nothing."""
    if not isinstance(sample.target, str):
        return False
    ours = [*gold.answers, gold.incorrect_explanation, *gold.incorrect_step]
    theirs = loose(sample.target)
    return any(ours) and not all(loose(text) in theirs for text in ours)


def make_words_prediction(
    sample: HarnessSample, task: Task, results: Results, *, program: str, spec_digest: str
) -> Prediction:
    """Build the prediction that a sample stands for: its answer in words, else its whole reply."""
    text = sample.choice if isinstance(sample.choice, str) else sample.reply
    fields: dict[str, Any] = {
        "question": task.key,
        "program": program,
        "spec_digest": spec_digest,
        "calls": (told_call(sample, text if sample.reply is None else sample.reply, results.model),),
        "latency_s": sample.latency_s,
    }
    if text is None or not text.strip():
        return Prediction(**fields, status=Status.UNANSWERED, reason=Reason.EMPTY)
    return Prediction(**fields, status=Status.ANSWERED, text=text.strip())
