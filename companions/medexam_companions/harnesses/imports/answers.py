"""What a sample answers: which option it chooses, or its words, and the prediction made of it.

The harness's verdict decides. If it says right and its reply names no option, the right option is taken; if it says
wrong and the file does not say what was chosen, the question counts as unanswered, for nobody knows the option. An
answer that is no number, letter or text of an option is read as a reply is, leniently; what says nothing even so is
unreadable, and counted.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal

from medexam import Prediction, Question
from medexam.predictions import ModelCall, Reason, Status
from medexam.questions import ExamSet, Gold, TaskGold, TaskSet
from medexam.signatures import read_leniently
from medexam_companions.harnesses.imports.matching import loose, near_text
from medexam_companions.harnesses.imports.samples import Choice, HarnessSample, Results, ResultsError

Pair = tuple[HarnessSample, Question, Gold]
"""A sample, its question in the sample's words, and our gold."""
Possible = Mapping[Literal["place", "letter", "number", "text", "statement"], int]
"""Form in which a file may write a choice -> printed number of the option that it then means."""
MOST_UNREADABLE = 0.1
"""Share of the answers without a verdict that may name no option, unless more may be unmatched."""
_LABEL = re.compile(
    r"[\W_]*(?:(?:answer|choice|opt|ans)[\W_]+|option[\W_]*)?([A-Z]|\d{1,2})(?:\.0+)?[\W_]*", re.IGNORECASE
)
"""An answer that is a letter or a number alone, such as `(B)`, `B.`, `Answer: B`, `option_b`, `3` or `3.0`."""
_TOKENS = re.compile(r"(?:\s*(?:<\|[^|<>]*\|>|</?s>|<eos>|<end_of_turn>))+\s*\Z", re.IGNORECASE)
"""What chat templates end a reply with."""
_NO_ANSWER = frozenset({"", "[invalid]", "nan", "none", "null", "na", "n/a", "no answer", "unanswered", "-", "?"})
"""How files write that nothing was answered, in small letters."""


def read_choices(
    path: Path,
    results: Results,
    pairs: Mapping[str, tuple[HarnessSample, Any]],
    items: ExamSet,
    most_unreadable: float,
    fields: Mapping[str, Any],
) -> tuple[list[Prediction], int, int]:
    """Make the predictions of the matched questions, which `items` holds; `fields` are what all of them share.

    Return them with the count of answers that cannot be read, and of questions of which the file expects another answer
    than our data. Raises `ResultsError` if too many answers without a verdict name no option.
    """
    triples = [(*pairs[question.key], items.golds[question.key]) for question in items.questions]
    choices = _read_column((sample.choice, sample, question) for sample, question, _ in triples)
    targets = _read_column((sample.target, sample, question) for sample, question, _ in triples)
    unreadable = [
        sample
        for sample, question, _ in triples
        if choices[question.key] is None and _is_text(sample.choice) and sample.right is not True
    ]
    _check_unreadable(path, triples, [str(each.choice) for each in unreadable if each.right is None], most_unreadable)
    predictions = [
        _make_prediction(
            sample, question, _answer(sample, gold, choices[question.key], targets[question.key]), results, fields
        )
        for sample, question, gold in triples
    ]
    other_gold = sum(_is_other(targets[question.key], gold) for _, question, gold in triples)
    return predictions, len(unreadable), other_gold


def told_fields(key: str, sample: HarnessSample, reply: str | None, model: str | None) -> dict[str, Any]:
    """Return what a file tells of the call of a sample, as fields of a prediction: not what was sent."""
    counts: dict[str, Any] = {"prompt_tokens": sample.prompt_tokens, "completion_tokens": sample.completion_tokens}
    has_call = any(value is not None for value in (reply, *counts.values()))
    call = ModelCall(text=reply, finish_reason="stop" if has_call else None, model=model, **counts)
    return {"question": key, "calls": (call,), "latency_s": sample.latency_s}


def _check_unreadable(path: Path, triples: Sequence[Pair], unreadable: Sequence[str], most: float) -> None:
    """Raise `ResultsError` if too many answers without a verdict cannot be read, or if they seem to count from 0."""
    answers = [(sample.choice, question) for sample, question, _ in triples if sample.right is None]
    texts = [(text, str(question.option_numbers[-1])) for text, question in answers if isinstance(text, str)]
    labels = [(label[1], last) for text, last in texts if (label := _LABEL.fullmatch(text))]
    if any(label == "0" for label, _ in labels) and not any(label == last for label, last in labels):
        raise ResultsError(
            f"{path}: the answers seem to count from 0: one is 0, and none is the number of a last option. Write "
            "the printed numbers, from 1, or letters; leave unanswered questions empty"
        )
    total = len(answers)
    if len(unreadable) <= max(most, MOST_UNREADABLE) * total:
        return
    examples = ", ".join(f"{text!r:.80}" for text in list(dict.fromkeys(unreadable))[:3])
    raise ResultsError(
        f"{path}: {len(unreadable):,} of {total:,} answers cannot be read, such as {examples}: write the printed "
        "number, the letter or the text of an option, or leave the answer empty; or --most-unmatched "
        f"{min(1.0, len(unreadable) / total + 0.005):.2f} to count them as unanswered"
    )


def _read_column(choices: Iterable[tuple[Choice | None, HarnessSample, Question]]) -> dict[str, int | None]:
    """Find the printed number of the option that each choice means, by the key of its question.

    Where the text of an option is a letter or a number, a choice may mean two options. It then means the one in whose
    form the file writes other choices, and none if that does not tell.
    """
    by_key = {
        question.key: _possible(choice, question, option_numbers(sample, question))
        for choice, sample, question in choices
    }
    forms = {form for possible in by_key.values() if len(possible) == 1 for form in possible}
    return {key: _meant(possible, forms) for key, possible in by_key.items()}


def _meant(possible: Possible, forms: Collection[str]) -> int | None:
    numbers = set(possible.values())
    if len(numbers) > 1:
        numbers = {number for form, number in possible.items() if form in forms}
    return numbers.pop() if len(numbers) == 1 else None


def option_numbers(sample: HarnessSample, question: Question) -> tuple[int, ...] | None:
    """Return the printed number of each option of a sample; None if they cannot be told.

    Without texts they are taken in our order.
    """
    if not sample.options:
        return question.option_numbers
    for reduce in (near_text, loose):
        our_texts, file_texts = [reduce(option.text) for option in question.options], list(map(reduce, sample.options))
        if file_texts == our_texts:
            return question.option_numbers
        if len(set(our_texts)) == len(our_texts) and sorted(file_texts) == sorted(our_texts):
            return tuple(question.option_numbers[our_texts.index(text)] for text in file_texts)
    return None


def _possible(choice: Choice | None, question: Question, numbers: Sequence[int] | None) -> Possible:
    """Return the option that a choice may mean, by each form in which it means one; empty if it is none of these.

    `numbers` are those of the sample's options in its order. A place and a letter count these from 0 and from A, a
    number is the printed one, a text is an option's own, and a statement says one of these in more words.
    """
    if choice is None:
        return {}
    places = dict(enumerate(numbers or ()))
    if isinstance(choice, int):
        return {"place": places[choice]} if choice in places else {}
    choice = _TOKENS.sub("", unicodedata.normalize("NFC", choice))
    possible: dict[Literal["place", "letter", "number", "text", "statement"], int] = {}
    if (label := _LABEL.fullmatch(choice)) is not None:
        if label[1].isdigit() and int(label[1]) in question.option_numbers:
            possible["number"] = int(label[1])
        elif label[1].isalpha() and (place := ascii_uppercase.index(label[1].upper())) in places:
            possible["letter"] = places[place]
    for reduce in (near_text, loose):
        text = reduce(choice)
        matches = [option.number for option in question.options if text and reduce(option.text) == text]
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


def _is_other(target: int | None, gold: Gold) -> bool:
    """Return whether a file's right option is none of ours; False if the file names none."""
    return target is not None and not gold.accepts(target)


def _answer(sample: HarnessSample, gold: Gold, choice: int | None, target: int | None) -> int | None:
    if sample.right is None:
        return choice
    # A file may name one of several right options.
    is_right = choice == target if _is_other(target, gold) else gold.accepts(choice)
    if is_right is sample.right:
        return choice
    return (gold.number if target is None else target) if sample.right else None


def _make_prediction(
    sample: HarnessSample, question: Question, answer: int | None, results: Results, shared: Mapping[str, Any]
) -> Prediction:
    fields = {**shared, **told_fields(question.key, sample, sample.reply, results.model)}
    if answer is None:
        unparsed = sample.reply is not None or _is_text(sample.choice)
        reason = Reason.UNPARSED if unparsed else Reason.EMPTY if sample.right is None else Reason.NOT_TOLD
        return Prediction(**fields, status=Status.UNANSWERED, reason=reason)
    numbers = option_numbers(sample, question)
    if sample.scores is not None and numbers is not None and len(sample.scores) == len(numbers):
        scores = dict(zip(numbers, sample.scores, strict=True))
        fields["option_scores"] = {number: scores[number] for number in question.option_numbers}
        fields |= {"score_unit": results.score_unit, "score_norm": results.score_norm}
        fields["tied"] = sample.scores.count(max(sample.scores))
    return Prediction(**fields, status=Status.ANSWERED, answer=answer)


def read_words(
    results: Results, pairs: Mapping[str, tuple[HarnessSample, Any]], items: TaskSet, fields: Mapping[str, Any]
) -> tuple[list[Prediction], int, int]:
    """Make the predictions of the matched questions, as `read_choices` does; no answer in words is unreadable."""
    samples = {task.key: pairs[task.key][0] for task in items.questions}
    predictions = [_make_words_prediction(key, sample, results, fields) for key, sample in samples.items()]
    return predictions, 0, sum(_is_other_text(sample, items.golds[key]) for key, sample in samples.items())


def _is_other_text(sample: HarnessSample, gold: TaskGold) -> bool:
    """Return whether what the file expects holds none of what our data expect; False if either says nothing."""
    if not isinstance(sample.target, str):
        return False
    our_texts = [*gold.answers, gold.incorrect_explanation, *gold.incorrect_step]
    file_texts = loose(sample.target)
    return any(our_texts) and not all(loose(text) in file_texts for text in our_texts)


def _make_words_prediction(key: str, sample: HarnessSample, results: Results, shared: Mapping[str, Any]) -> Prediction:
    """Build the prediction that a sample stands for: its answer in words, else its whole reply."""
    text = sample.choice if isinstance(sample.choice, str) else sample.reply
    fields = {**shared, **told_fields(key, sample, text if sample.reply is None else sample.reply, results.model)}
    if text is None or not text.strip():
        return Prediction(**fields, status=Status.UNANSWERED, reason=Reason.EMPTY)
    return Prediction(**fields, status=Status.ANSWERED, text=text.strip())
