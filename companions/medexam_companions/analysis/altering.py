"""Altered questions, `dataset.alter` of a spec; the number of the right option stays, so that runs can be paired.

`question_withheld` after Balepur et al. (2024), "Artifacts or abduction: how do LLMs answer multiple-choice questions
without the question?". `options_replaced` after Yao et al. (2024), "Data contamination can cross language barriers".
`none_of_the_above` after Elhady et al. (2025), "WiCkeD", and Salido et al. (2025), "None of the others".
`question_continued` asks as a choice what Golchin and Surdeanu (2024), "Time travel in LLMs", have a model write: the
rest of a question. How a question is altered depends on its key, the seed and the whole data set, never on what is
selected.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from medexam.datasets import Altered, Row, draw_lot, load_exam_set
from medexam.errors import DatasetError
from medexam.questions import Language, Option, Question
from medexam.specs import DatasetSpec
from medexam.text import plain_letters, split_sentences

_FEWEST_WORDS = 8
"""A question of fewer words has no second half that is its own."""
_REASON = "their options refer to one another, or more than one would be right"
_TRIES = 20
"""Draws for each option that is replaced, before the question is left out."""


def question_withheld(rows: Sequence[Row], language: Language) -> Altered:
    """Show the options alone."""
    words = _data()["words"][language][0]
    return Altered(tuple(_with_stem(row, words) for row in rows))


def options_withheld(rows: Sequence[Row], language: Language) -> Altered:
    """Show the question and the numbers of its options."""
    words = _data()["words"][language][1]
    return Altered(tuple(_with_options(row, dict.fromkeys(row.question.option_numbers, words)) for row in rows))


def none_of_the_above(rows: Sequence[Row], language: Language) -> Altered:
    """Put `None of the other options` in place of the right option, without further right options."""
    altered: dict[str, Row | None] = {}
    none = _data()["words"][language][2]
    for row in rows:
        options = [option for option in row.question.options if option.number not in row.others]
        if len(options) < 2 or any(refers_to_options(option.text) for option in options):
            altered[row.question.key] = None
        else:
            texts = {option.number: option.text for option in options} | {row.gold or 0: none}
            altered[row.question.key] = replace(_with_options(row, texts), others=())
    return _split(altered, _REASON)


def question_continued(rows: Sequence[Row], language: Language, *, seed: int = 17) -> Altered:
    """Show the first half of the question's words, and as options second halves of its discipline."""
    joint = "" if language in {"ja", "zh"} else " "
    halves: dict[str, tuple[str, str]] = {}
    for row in rows:
        words = row.question.stem.split() if joint else [*row.question.stem]
        if len(words) >= _FEWEST_WORDS:
            first = (len(words) + 1) // 2
            halves[row.question.key] = joint.join(words[:first]), joint.join(words[first:])
    pools = _pool(rows, {key: ending for key, (_, ending) in halves.items()})
    altered: dict[str, Row | None] = dict.fromkeys(row.question.key for row in rows)
    for row in rows:
        question = row.question
        if row.gold is None or question.key not in halves:
            continue
        stem, ending = halves[question.key]
        pool = pools[question.exam.discipline]
        texts = _draw_others(question, {row.gold: ending}, {_alike(ending)}, pool, seed)
        if texts is not None:
            altered[question.key] = _with_options(replace(_with_stem(row, stem), others=()), texts)
    few = f"they have fewer than {_FEWEST_WORDS} words, or their discipline has too few others"
    return _split(altered, few)


def options_replaced(rows: Sequence[Row], language: Language, *, seed: int = 17) -> Altered:  # noqa: ARG001
    """Put right options of other questions of the discipline in place of the wrong ones."""
    rights = {
        row.question.key: option.text for row in rows for option in row.question.options if option.number == row.gold
    }
    pools = _pool(rows, {key: text for key, text in rights.items() if text.strip() and not refers_to_options(text)})
    altered: dict[str, Row | None] = dict.fromkeys(rights)
    for row in rows:
        question, pool = row.question, pools[row.question.exam.discipline]
        texts = {option.number: option.text for option in question.options if option.number in {row.gold, *row.others}}
        # The last sentence may ask for what is wrong, as `Which is NOT true?` does.
        (start, _) = (split_sentences(question.stem) or [(0, 0)])[-1]
        is_negated = re.search(_data()["negated"], plain_letters(question.stem[start:]), re.VERBOSE)
        if not pool or is_negated or any(map(refers_to_options, texts.values())):
            continue
        own_forms = {_alike(option.text) for option in question.options}
        if (new_texts := _draw_others(question, texts, own_forms, pool, seed)) is not None:
            altered[question.key] = _with_options(row, new_texts)
    return _split(altered, _REASON)


def paraphrased(rows: Sequence[Row], language: Language, *, table: Path) -> Altered:
    """Reword every question that stands in a table of the user's, in the table's words.

    It is read as multiple-choice questions of one's own, with the key in the column `id`. Contexts and pictures stay.
    Raises `DatasetError` if the table cannot be read, names a question that is none, or has other options or another
    right one.
    """
    others = load_exam_set(DatasetSpec(kind="choice", path=table, language=language))
    questions = {question.key: question for question in others.questions}
    row_by_key = {row.question.key: row for row in rows}
    if unknown := next((key for key in questions if key not in row_by_key), None):
        raise DatasetError(
            f"{table}: {unknown} is not a key of the data set: the column id must hold keys as in predictions.jsonl"
        )
    altered: dict[str, Row | None] = dict.fromkeys(row_by_key)
    for key, other in questions.items():
        row, question = row_by_key[key], row_by_key[key].question
        numbers = dict(zip(other.option_numbers, question.option_numbers, strict=False))
        if len(other.options) != len(question.options) or numbers[others.golds[key].number] != row.gold:
            raise DatasetError(
                f"{table}: {key} has another number of options than the data set ({len(question.options)}), or another "
                f"right one ({row.gold}): give each option in the exam's order"
            )
        texts = {numbers[option.number]: option.text for option in other.options}
        altered[key] = _with_options(_with_stem(row, other.stem, alone=False), texts)
    return _split(altered, "the file has no paraphrase of them")


def refers_to_options(text: str) -> bool:
    """Return whether an option speaks of the other ones, as `All of the above` does."""
    return re.search(_data()["referring"], plain_letters(text), re.VERBOSE) is not None


@cache
def _data() -> dict[str, Any]:
    """Read what is shown in each language, and the pattern of options that speak of the other ones."""
    data: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    return data


def _split(altered: Mapping[str, Row | None], reason: str) -> Altered:
    rows = tuple(row for row in altered.values() if row is not None)
    return Altered(rows, tuple(key for key, row in altered.items() if row is None), reason)


def _with_stem(row: Row, stem: str, *, alone: bool = True) -> Row:
    """Return the row with this stem, by default without its context and picture."""
    update = {"stem": stem, **({"context": None, "image": None} if alone else {})}
    return replace(row, question=row.question.model_copy(update=update))


def _with_options(row: Row, texts: Mapping[int, str]) -> Row:
    """Return the row with these options, by number, in the order of the exam."""
    numbers = [number for number in row.question.option_numbers if number in texts]
    options = tuple(Option(number=number, text=texts[number]) for number in numbers)
    return replace(row, question=row.question.model_copy(update={"options": options}))


def _pool(rows: Iterable[Row], texts: Mapping[str, str]) -> defaultdict[str, list[tuple[str, str]]]:
    """Map each discipline to key and text of each of its questions that has one in `texts`, in the order of the
    keys.
    """
    pools: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.question.key):
        if row.question.key in texts:
            pools[row.question.exam.discipline].append((row.question.key, texts[row.question.key]))
    return pools


def _draw_others(
    question: Question, texts: Mapping[int, str], own_forms: set[str], pool: Sequence[tuple[str, str]], seed: int
) -> dict[int, str] | None:
    """Fill `texts` with one of another question for each option that has none; None if too few differ from
    `own_forms`.
    """
    all_texts, forms = dict(texts), set(own_forms)
    for number in (number for number in question.option_numbers if number not in texts):
        for attempt in range(_TRIES):
            index = int.from_bytes(draw_lot(seed, f"{question.key}/{number}/{attempt}")) % len(pool)
            other, text = pool[index]
            if other != question.key and _alike(text) not in forms:
                all_texts[number] = text
                forms.add(_alike(text))
                break
        else:
            return None
    return all_texts


def _alike(text: str) -> str:
    """Return what two options share that say the same."""
    return "".join(character for character in text.casefold() if character.isalnum())
