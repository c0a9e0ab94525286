"""How fast answers in words are scored. Prints one JSON document.

    python bench/task_scorers.py --items 5000 --pairs 10000

ClinIQLink's sample in `$MEDEXAM_DATA` is multiplied: right answers keep their number of words and, like the replies,
are cut from real passages, so that they share words as real texts do. Both profiles are scored, with n-grams. Beside
it `--alone` answers in the way of a loop over items, which asks the encoder anew for each answer's texts and word
pieces. Span metrics are timed on cuts of the same passages, beside torchmetrics where that is installed.
"""

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from medexam.benchmarks import find_benchmark
from medexam.datasets import load_task_set
from medexam.metrics import score_span
from medexam.predictions import Prediction, Status
from medexam.questions import TaskSet
from medexam.retrievers import load_corpus
from medexam.specs import DatasetSpec
from medexam_companions.cliniqlink.benchmark import load_scorer_encoder
from medexam_companions.cliniqlink.meaning import content_words

REPLY_WORDS = 60
OPEN = frozenset(("short", "short_inverse", "multi_hop", "multi_hop_inverse"))


class Cuts:
    """Texts cut from the passages at random places, always the same."""

    def __init__(self) -> None:
        self._passages = [passage.content.split() for passage in load_corpus(None).passages]
        self._random = random.Random(17)

    def cut(self, words: int) -> str:
        """A text of at most so many words."""
        passage = self._random.choice(self._passages)
        start = self._random.randrange(max(len(passage) - words, 1))
        return " ".join(passage[start : start + words])


def multiply(count: int, cuts: Cuts) -> tuple[TaskSet, dict[str, Prediction]]:
    """So many items of the seven formats in turn, and a reply to each."""
    sample = load_task_set(DatasetSpec(name="cliniqlink"))
    tasks, golds, predictions = [], {}, {}
    for place in range(count):
        task = sample.questions[place % len(sample.questions)]
        gold, key = sample.golds[task.key], f"{task.key}/{place}"
        reply = gold.answers[0]
        if task.group in OPEN:
            gold = replace(
                gold,
                answers=tuple(cuts.cut(len(text.split())) for text in gold.answers),
                incorrect_explanation=cuts.cut(len(gold.incorrect_explanation.split())),
            )
            reply = cuts.cut(REPLY_WORDS)
        tasks.append(replace(task, key=key))
        golds[key] = replace(gold, paragraph=None)
        predictions[key] = Prediction(
            question=key, status=Status.ANSWERED, text=reply, program="p", spec_digest="d", reply=reply
        )
    references = tuple(" ".join(gold.answers) for gold in golds.values())
    return replace(sample, questions=tuple(tasks), golds=golds, references=references), predictions


def score_alone(task_set: TaskSet, predictions: dict[str, Prediction], count: int) -> tuple[int, float]:
    """Encode what `count` open answers need, one answer after the other; how many there were, and seconds."""
    encoder = load_scorer_encoder()
    chosen = [task for task in task_set.questions if task.group in OPEN][:count]
    begun = time.perf_counter()
    for task in chosen:
        for text in (" ".join(task_set.golds[task.key].answers), predictions[task.key].text or ""):
            clean = content_words(text)
            encoder.encode([piece for piece in encoder.pieces(clean) if piece.isalnum()])
            encoder.encode([clean])
            encoder.encode([text])
    return len(chosen), time.perf_counter() - begun


def timed(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def time_spans(count: int, cuts: Cuts) -> dict[str, float]:
    """Seconds for F1 and exact match of so many pairs of 30 words that share half of them."""
    shared = [cuts.cut(15) for _ in range(count)]
    pairs = [(f"{text} {cuts.cut(15)}", f"{cuts.cut(15)} {text}") for text in shared]
    found = {"seconds": round(timed(lambda: [score_span(said, (gold,), "squad") for said, gold in pairs]), 2)}
    if find_spec("torchmetrics") is not None:
        found["torchmetrics_seconds"] = round(timed(lambda: by_torchmetrics(pairs)), 2)
    return found


def by_torchmetrics(pairs: Sequence[tuple[str, str]]) -> None:
    from torchmetrics.functional.text import squad

    said = [{"id": str(place), "prediction_text": text} for place, (text, _) in enumerate(pairs)]
    gold = [
        {"id": str(place), "answers": {"text": [text], "answer_start": [0]}} for place, (_, text) in enumerate(pairs)
    ]
    squad(said, gold)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=5000)
    parser.add_argument("--alone", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=10_000)
    arguments = parser.parse_args()
    load_average, cuts = os.getloadavg()[0], Cuts()
    task_set, predictions = multiply(arguments.items, cuts)
    load_scorer_encoder()
    before = time.process_time()
    seconds = timed(lambda: find_benchmark(DatasetSpec(name=task_set.name)).score(task_set, predictions))
    processor = time.process_time() - before
    answers = sum(task.group in OPEN for task in task_set.questions)
    alone, alone_seconds = score_alone(task_set, predictions, arguments.alone)
    document = {
        "load_average": round(load_average, 2),
        "items": arguments.items,
        "open_answers": answers,
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor, 1),
        "answers_per_s": round(answers / seconds, 1),
        "alone_answers_per_s": round(alone / alone_seconds, 1),
        "ratio": round(answers / seconds / (alone / alone_seconds), 1),
        "pairs": arguments.pairs,
        "spans": time_spans(arguments.pairs, cuts),
    }
    print(json.dumps(document, indent=2))


if __name__ == "__main__":
    main()
