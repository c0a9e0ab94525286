"""From a matched sample to our `Prediction`: what was chosen, in the printed numbers of our question.

The harness's verdict decides. If it says right and its reply names no option, the right option is taken; if it says
wrong and the file does not say what was chosen, the question counts as unanswered, for nobody knows the option. An
answer that is no number, letter or text of an option is read as a reply is, leniently; what says nothing even so is
unreadable, and counted.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from medexam import Prediction, Question
from medexam.predictions import ModelCall, Reason, Status
from medexam.questions import Gold
from medexam.signatures import read_leniently
from medexam_companions.harnesses.imports.matching import loose, near_text
from medexam_companions.harnesses.imports.samples import Choice, HarnessSample, Results

Pair = tuple[HarnessSample, Question, Gold]
"""A sample, its question in the sample's words, and our gold."""
Form = Literal["place", "letter", "number", "text", "statement"]
"""How a file writes a choice; see `possible_choices`."""
Possible = Mapping[Form, int]
"""Form -> printed number of the option that a choice means in that form."""

_LABEL = re.compile(
    r"[\W_]*(?:(?:answer|choice|opt|ans)[\W_]+|option[\W_]*)?([A-Z]|\d{1,2})(?:\.0+)?[\W_]*", re.IGNORECASE
)
"""An answer that is a letter or a number alone, such as `(B)`, `B.`, `Answer: B`, `option_b`, `3` or `3.0`."""
_TOKENS = re.compile(r"(?:\s*(?:<\|[^|<>]*\|>|</?s>|<eos>|<end_of_turn>))+\s*\Z", re.IGNORECASE)
"""What chat templates end a reply with."""
_NO_ANSWER = frozenset({"", "[invalid]", "nan", "none", "null", "na", "n/a", "no answer", "unanswered", "-", "?"})
"""How files write that nothing was answered, in small letters."""


class ChoiceReader:
    """Reads what the samples of one file choose and hold for right, in the forms in which the file writes them.

    Where the text of an option is a letter or a number, a choice may mean two options. It then means the one in whose
    form the file writes other choices, and none if that does not tell.
    """

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._numbers = {question.key: option_numbers(sample.options, question) for sample, question, _ in pairs}
        self._choices = self._read((sample.choice, question) for sample, question, _ in pairs)
        self.unreadable = [
            sample
            for sample, question, _ in pairs
            if _is_text(sample.choice) and self._choices[question.key] is None and sample.right is not True
        ]
        """The samples whose answer is a text that names no option, or may mean several, if no verdict says right."""
        self._targets = self._read((sample.target, question) for sample, question, _ in pairs)

    def numbers(self, question: Question) -> tuple[int, ...] | None:
        """Return what `option_numbers` gives for the question's sample."""
        return self._numbers[question.key]

    def chosen(self, question: Question) -> int | None:
        """Return the printed number of the option that is chosen; None if that is none or cannot be told."""
        return self._choices[question.key]

    def target(self, question: Question) -> int | None:
        """Return the printed number of the option that is right by the file; None if it does not tell."""
        return self._targets[question.key]

    def _read(self, choices: Iterable[tuple[Choice | None, Question]]) -> dict[str, int | None]:
        """Find the option that each choice of one column means, by the key of its question."""
        by_key = {
            question.key: possible_choices(choice, question, self._numbers[question.key])
            for choice, question in choices
        }
        forms = {form for possible in by_key.values() if len(possible) == 1 for form in possible}
        return {key: _meant(possible, forms) for key, possible in by_key.items()}


def _meant(possible: Possible, forms: Collection[Form]) -> int | None:
    """Return the only option that a choice may mean, or may mean in one of these forms; else None."""
    numbers = set(possible.values())
    if len(numbers) > 1:
        numbers = {number for form, number in possible.items() if form in forms}
    return numbers.pop() if len(numbers) == 1 else None


def counts_from_zero(pairs: Sequence[Pair]) -> bool:
    """Return whether answers without a verdict are numbers that seem to count from 0: one is 0, and none the last."""
    labels = (
        (_LABEL.fullmatch(sample.choice), question)
        for sample, question, _ in pairs
        if isinstance(sample.choice, str) and sample.right is None
    )
    numbers = [(int(label[1]), question) for label, question in labels if label and label[1].isdigit()]
    return any(number == 0 for number, _ in numbers) and not any(
        number == max(question.option_numbers) for number, question in numbers
    )


def is_other_gold(target: int | None, gold: Gold) -> bool:
    """Return whether a file's right option is none of ours; False if the file names none."""
    return target is not None and not gold.accepts(target)


def make_prediction(
    sample: HarnessSample,
    question: Question,
    gold: Gold,
    results: Results,
    reader: ChoiceReader,
    *,
    program: str,
    spec_digest: str,
) -> Prediction:
    """Build the prediction that a sample stands for; `gold` is ours, and `reader` that of the whole file."""
    fields: dict[str, Any] = {
        "question": question.key,
        "program": program,
        "spec_digest": spec_digest,
        "calls": (told_call(sample, sample.reply, results.model),),
        "latency_s": sample.latency_s,
    }
    numbers = reader.numbers(question)
    answer = _answer(sample, question, gold, reader)
    if answer is None:
        unparsed = sample.reply is not None or _is_text(sample.choice)
        reason = Reason.UNPARSED if unparsed else Reason.EMPTY if sample.right is None else Reason.NOT_TOLD
        return Prediction(**fields, status=Status.UNANSWERED, reason=reason)
    if sample.scores is not None and numbers is not None and len(sample.scores) == len(numbers):
        scores = dict(zip(numbers, sample.scores, strict=True))
        fields["option_scores"] = {number: scores[number] for number in question.option_numbers}
        fields |= {"score_unit": results.score_unit, "score_norm": results.score_norm}
        fields["tied"] = sample.scores.count(max(sample.scores))
    return Prediction(**fields, status=Status.ANSWERED, answer=answer)


def told_call(sample: HarnessSample, reply: str | None, model: str | None) -> ModelCall:
    """Return what a file tells of the call of a sample: not what was sent."""
    told = reply is not None or sample.prompt_tokens is not None or sample.completion_tokens is not None
    return ModelCall(
        text=reply,
        finish_reason="stop" if told else None,
        model=model,
        prompt_tokens=sample.prompt_tokens,
        completion_tokens=sample.completion_tokens,
    )


def as_worded(sample: HarnessSample, question: Question, published: Question | None) -> Question:
    """Return the question in the words of the sample's options: ours, or as `published` before characters were
    corrected.
    """
    if published is None or option_numbers(sample.options, question) is not None:
        return question
    return published


def option_numbers(options: Sequence[str], question: Question) -> tuple[int, ...] | None:
    """Return the printed number of each option of a sample; None if they cannot be told.

    Without texts they are taken in our order.
    """
    if not options:
        return question.option_numbers
    if len(options) != len(question.options):
        return None
    for reduce in (near_text, loose):
        our_texts = [reduce(option.text) for option in question.options]
        their_texts = list(map(reduce, options))
        if their_texts == our_texts:
            return question.option_numbers
        places = dict(zip(our_texts, question.option_numbers, strict=True))
        if len(places) == len(our_texts) and sorted(their_texts) == sorted(our_texts):
            return tuple(places[text] for text in their_texts)
    return None


def possible_choices(choice: Choice | None, question: Question, numbers: Sequence[int] | None) -> Possible:
    """Return the printed number of the option that a choice may mean, by each form in which it means one.

    `numbers` are those of the sample's options in its order. A place and a letter count these from 0 and from A, a
    number is the printed one, a text is an option's own, and a statement says one of these in more words. Empty if the
    choice is none of these.
    """
    if choice is None:
        return {}
    if isinstance(choice, int):
        return {"place": numbers[choice]} if numbers is not None and 0 <= choice < len(numbers) else {}
    choice = _TOKENS.sub("", unicodedata.normalize("NFC", choice))
    possible: dict[Form, int] = {}
    if (label := _LABEL.fullmatch(choice)) is not None:
        if label[1].isdigit():
            if int(label[1]) in question.option_numbers:
                possible["number"] = int(label[1])
        elif by_place := possible_choices(ord(label[1].upper()) - ord("A"), question, numbers):
            possible["letter"] = by_place["place"]
    for reduce in (near_text, loose):
        matches = [option.number for option in question.options if _same(reduce, option.text, choice)]
        if len(matches) == 1:
            return {**possible, "text": matches[0]}
    if possible or label is not None or numbers is None:
        return possible
    texts = {option.number: option.text for option in question.options}
    stated = read_leniently(choice, {number: texts[number] for number in numbers})
    return {} if stated is None else {"statement": stated}


def _is_text(choice: Choice | None) -> bool:
    """Return whether a choice is written in words, and not as having none."""
    return isinstance(choice, str) and choice.strip().lower() not in _NO_ANSWER


def _same(reduce: Callable[[str], str], text: str, choice: str) -> bool:
    reduced = reduce(choice)
    return bool(reduced) and reduce(text) == reduced


def _answer(sample: HarnessSample, question: Question, gold: Gold, reader: ChoiceReader) -> int | None:
    choice = reader.chosen(question)
    if sample.right is None:
        return choice
    target = reader.target(question)
    # A file may name one of several right options.
    is_right = choice == target if is_other_gold(target, gold) else gold.accepts(choice)
    if is_right is sample.right:
        return choice
    return (gold.number if target is None else target) if sample.right else None
