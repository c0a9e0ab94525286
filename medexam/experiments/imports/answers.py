"""From a matched sample to our `Prediction`: what was chosen, in the printed numbers of our question.

The harness's verdict decides. If it says right and its reply names no option, the right option is taken; if it says
wrong and the file does not say what was chosen, the question counts as unanswered, for nobody knows the option.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from medexam.experiments.imports.matching import loose, near_text
from medexam.experiments.imports.samples import Choice, Results, Sample
from medexam.items import Gold
from medexam.predictions import Prediction, Reason, Status
from medexam.questions import Question

_LABEL = re.compile(r"\W*(?:answer\W+)?([A-Za-z]|\d{1,2})\W*", re.IGNORECASE)
"""An answer that is a letter or a number alone, such as `(B)`, `B.`, `Answer: B` or `3`."""


def make_prediction(
    sample: Sample, question: Question, gold: Gold, results: Results, *, program: str, spec_digest: str
) -> Prediction:
    """The prediction that a sample stands for; `gold` is ours."""
    same: dict[str, Any] = {
        "question": question.key,
        "program": program,
        "spec_digest": spec_digest,
        "reply": sample.reply,
        "prompt_tokens": sample.prompt_tokens,
        "completion_tokens": sample.completion_tokens,
        "latency_s": sample.latency_s,
        "model": results.model,
    }
    numbers = option_numbers(sample.options, question)
    answer = _answer(sample, question, numbers, gold)
    if answer is None:
        reason = Reason.UNPARSED if sample.reply is not None else Reason.NOT_TOLD
        return Prediction(**same, status=Status.UNANSWERED, reason=reason)
    if sample.scores is not None and numbers is not None and len(sample.scores) == len(numbers):
        scores = dict(zip(numbers, sample.scores, strict=True))
        same["option_scores"] = {number: scores[number] for number in question.option_numbers}
        same |= {"score_unit": results.score_unit, "score_norm": results.score_norm}
        same["tied"] = sample.scores.count(max(sample.scores))
    return Prediction(**same, status=Status.ANSWERED, answer=answer)


def other_gold(sample: Sample, question: Question, gold: Gold) -> bool:
    """Whether the file names another right option than our key does; False if it names none."""
    target = read_choice(sample.target, question, option_numbers(sample.options, question))
    return target is not None and not gold.accepts(target)


def as_worded(sample: Sample, question: Question, published: Question | None) -> Question:
    """The question in the words of the sample's options: ours, or as `published` before characters were corrected."""
    if published is None or option_numbers(sample.options, question) is not None:
        return question
    return published


def option_numbers(options: Sequence[str], question: Question) -> tuple[int, ...] | None:
    """The printed number of each option of a sample; None if they cannot be told.

    Without texts they are taken in our order.
    """
    if not options:
        return question.option_numbers
    if len(options) != len(question.options):
        return None
    for reduce in (near_text, loose):
        ours = [reduce(option.text) for option in question.options]
        theirs = list(map(reduce, options))
        if theirs == ours:
            return question.option_numbers
        places = dict(zip(ours, question.option_numbers, strict=True))
        if len(places) == len(ours) and sorted(theirs) == sorted(ours):
            return tuple(places[text] for text in theirs)
    return None


def read_choice(choice: Choice | None, question: Question, numbers: Sequence[int] | None) -> int | None:
    """The printed number of the option that is meant, `numbers` being those of the sample's options in its order.

    A letter counts the sample's options from A, a number is the printed one, and any other text is an option's own.
    None if it is none of these.
    """
    if choice is None:
        return None
    if isinstance(choice, int):
        return numbers[choice] if numbers is not None and 0 <= choice < len(numbers) else None
    if (label := _LABEL.fullmatch(choice)) is not None:
        number = int(label[1]) if label[1].isdigit() else None
        if number is None:
            number = read_choice(ord(label[1].upper()) - ord("A"), question, numbers)
        if number in question.option_numbers:
            return number
    for reduce in (near_text, loose):
        meant = [option.number for option in question.options if _same(reduce, option.text, choice)]
        if len(meant) == 1:
            return meant[0]
    return None


def _same(reduce: Callable[[str], str], text: str, choice: str) -> bool:
    reduced = reduce(choice)
    return bool(reduced) and reduce(text) == reduced


def _answer(sample: Sample, question: Question, numbers: Sequence[int] | None, gold: Gold) -> int | None:
    chosen = read_choice(sample.chosen, question, numbers)
    if sample.right is None:
        return chosen
    target = read_choice(sample.target, question, numbers)
    # A file may name one of several right options.
    is_right = chosen == target if target is not None and not gold.accepts(target) else gold.accepts(chosen)
    if is_right is sample.right:
        return chosen
    return (gold.number if target is None else target) if sample.right else None
