"""The rows of a data set with altered questions; the number of the right option stays, so that runs can be paired.

`question_withheld` after Balepur et al. (2024), "Artifacts or abduction: how do LLMs answer multiple-choice questions
without the question?". `options_replaced` after Yao et al. (2024), "Data contamination can cross language barriers".
`none_of_the_above` after Elhady et al. (2025), "WiCkeD", and Salido et al. (2025), "None of the others".
`question_continued` asks as a choice what Golchin and Surdeanu (2024), "Time travel in LLMs", have a model write: the
rest of a question. How a question is altered depends on its key, the seed and the whole data set, never on what is
selected.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from medexam.datasets.altering.words import NONE_OF_THEM, OPTION_WITHHELD, STEM_WITHHELD, refers_to_options
from medexam.datasets.rows import Row
from medexam.datasets.selection import draw_lot
from medexam.questions import Option, Question
from medexam.specs.dataset import MadeAlteration
from medexam.text import is_negated

_FEWEST_WORDS = 8
"""A question of fewer words has no second half that is its own."""
_REFERRING = "their options refer to one another, or more than one would be right"
_TOO_SHORT = f"they have fewer than {_FEWEST_WORDS} words, or their discipline has too few others"
_TRIES = 20
"""Draws for each option that is replaced, before the question is left out."""


@dataclass(frozen=True, slots=True)
class Altered:
    """The rows that could be altered, and the keys of the others."""

    rows: tuple[Row, ...]
    unfit: tuple[str, ...]
    reason: str = _REFERRING
    """Why the others could not."""

    @property
    def note(self) -> str | None:
        """What a reader of the results should know of those that are left out; None if none is."""
        if not self.unfit:
            return None
        return (
            f"{len(self.unfit):,} of the data set's {len(self.unfit) + len(self.rows):,} questions cannot be altered "
            f"and are left out: {self.reason}"
        )


def alter_rows(rows: Iterable[Row], how: MadeAlteration, seed: int) -> Altered:
    """Alter every row that has a right answer; `seed` says which options replace others."""
    gold_rows = [row for row in rows if row.gold is not None]
    reason = _REFERRING
    match how:
        case "question_withheld":
            return Altered(tuple(map(_withhold_stem, gold_rows)), ())
        case "question_continued":
            row_by_key, reason = dict(_continue_all(gold_rows, seed)), _TOO_SHORT
        case "options_withheld":
            return Altered(tuple(map(_withhold_options, gold_rows)), ())
        case "none_of_the_above":
            row_by_key = {row.question.key: _put_none(row) for row in gold_rows}
        case "options_replaced":
            row_by_key = dict(_replace_all(gold_rows, seed))
    altered_rows = tuple(row for row in row_by_key.values() if row is not None)
    return Altered(altered_rows, tuple(key for key, row in row_by_key.items() if row is None), reason)


def _withhold_stem(row: Row) -> Row:
    words = STEM_WITHHELD[row.question.language]
    return replace(row, question=row.question.model_copy(update={"stem": words, "context": None, "image": None}))


def _withhold_options(row: Row) -> Row:
    words = OPTION_WITHHELD[row.question.language]
    return _with_options(row, dict.fromkeys(row.question.option_numbers, words))


def _put_none(row: Row) -> Row | None:
    """Put `None of the other options` in place of the right one, without further right options; None if unfit."""
    question = row.question
    options = [option for option in question.options if option.number not in row.others]
    if len(options) < 2 or any(refers_to_options(option.text) for option in options):
        return None
    texts = {option.number: option.text for option in options} | {row.gold or 0: NONE_OF_THEM[question.language]}
    return replace(_with_options(row, texts), others=())


def _continue_all(rows: Sequence[Row], seed: int) -> Iterator[tuple[str, Row | None]]:
    """Yield each row by its key: the first half of its words, and second halves of its discipline as options."""
    halves = {row.question.key: _halve(row.question) for row in rows}
    pools = _pool(rows, {key: pair[1] for key, pair in halves.items() if pair is not None})
    for row in rows:
        key, split = row.question.key, halves[row.question.key]
        if split is None or row.gold is None:
            yield key, None
            continue
        stem, ending = split
        texts = _draw_others(
            row.question, {row.gold: ending}, {_alike(ending)}, pools[row.question.exam.discipline], seed
        )
        question = row.question.model_copy(update={"stem": stem, "context": None, "image": None})
        new_row = replace(row, question=question, others=())
        yield key, None if texts is None else _with_options(new_row, texts)


def _halve(question: Question) -> tuple[str, str] | None:
    """Cut the question's words into a first and a second half; None if they are too few."""
    spaced = question.language not in {"ja", "zh"}
    words = question.stem.split() if spaced else [*question.stem]
    first, joint = (len(words) + 1) // 2, " " if spaced else ""
    return (joint.join(words[:first]), joint.join(words[first:])) if len(words) >= _FEWEST_WORDS else None


def _replace_all(rows: Sequence[Row], seed: int) -> Iterator[tuple[str, Row | None]]:
    """Yield each row by its key, with right options of other questions of its discipline in place of its wrong ones."""
    rights = {
        row.question.key: option.text for row in rows for option in row.question.options if option.number == row.gold
    }
    pools = _pool(rows, {key: text for key, text in rights.items() if text.strip() and not refers_to_options(text)})
    for row in rows:
        yield row.question.key, _replace_wrong(row, pools[row.question.exam.discipline], seed)


def _pool(rows: Iterable[Row], texts: Mapping[str, str]) -> defaultdict[str, list[tuple[str, str]]]:
    """Map each discipline to key and text of each of its questions that has one in `texts`, in the order of the
    keys.
    """
    pools: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.question.key):
        if row.question.key in texts:
            pools[row.question.exam.discipline].append((row.question.key, texts[row.question.key]))
    return pools


def _replace_wrong(row: Row, pool: Sequence[tuple[str, str]], seed: int) -> Row | None:
    question, right = row.question, {row.gold, *row.others}
    texts = {option.number: option.text for option in question.options if option.number in right}
    if not pool or is_negated(question.stem) or any(refers_to_options(text) for text in texts.values()):
        return None
    own_forms = {_alike(option.text) for option in question.options}
    new_texts = _draw_others(question, texts, own_forms, pool, seed)
    return None if new_texts is None else _with_options(row, new_texts)


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


def _with_options(row: Row, texts: Mapping[int, str]) -> Row:
    """Return the row with these options, by number, in the order of the exam."""
    numbers = [number for number in row.question.option_numbers if number in texts]
    options = tuple(Option(number=number, text=texts[number]) for number in numbers)
    return replace(row, question=row.question.model_copy(update={"options": options}))


def _alike(text: str) -> str:
    """Return what two options share that say the same."""
    return "".join(character for character in text.casefold() if character.isalnum())
