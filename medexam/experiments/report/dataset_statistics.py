"""What an exam looks like in numbers: sizes, lengths, and where the right answer stands.

Sizes and lengths are those of Correa-Guillén et al. (2025), table 1 and figures 3 and 4; splits those of
Vilares and Gómez-Rodríguez (2019), table 2. A word is what stands between white space.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from medexam.datasets.selection import split_of
from medexam.distributions import chi_square_tail
from medexam.questions import AnswerKey, Language, Question
from medexam.tables import NONE, Table, decimal, p_value, percent

Statistics = dict[str, Any]
"""A data set in numbers, JSON-ready; see `compute_statistics`."""
_SPLITS = ("train", "dev", "test")


def compute_statistics(questions: Sequence[Question], key: AnswerKey, *, name: str, language: Language) -> Statistics:
    """Compute the statistics of `questions`, at least one; raises `DatasetError` if `key` lacks one of them.

    - `name`, `language`; numbers of `questions`, `exams` and those `with_images`, which refer to a picture
    - `by_exam`, `by_split`: discipline -> year, or official split -> questions; those of exams without one are left out
    - `images_by_discipline`
    - `overall`, `by_year`, `by_discipline`: lengths of `questions`, their stems, and of `answers`, each option, in
      `words` and `characters`: `n`, `mean`, `deviation` of the sample, `most`, and the 5, 25, 50, 75 and 95 %
      `quantiles`
    - `positions`: for each number of `options`, how often the first, the second, ... one is `right`, in the exam's
      order; Pearson's `chi_square` and `p` against all being equally likely, rough where fewer than 5 are expected
    """
    by_discipline = _group((question.exam.discipline, question) for question in questions)
    by_split = {
        group: Counter(split_of(each.exam, name) for each in members) for group, members in by_discipline.items()
    }
    images = Counter(question.exam.discipline for question in questions if question.image is not None)
    by_options = _group((len(question.options), question) for question in questions)
    return {
        "name": name,
        "language": language,
        "questions": len(questions),
        "exams": len({question.exam for question in questions}),
        "by_exam": {
            group: {year: len(some) for year, some in _group((each.exam.year, each) for each in members).items()}
            for group, members in by_discipline.items()
        },
        "by_split": {
            group: {split: counts[split] for split in _SPLITS if counts[split]} for group, counts in by_split.items()
        },
        "overall": _measure(questions),
        "by_year": {
            year: _measure(some) for year, some in _group((each.exam.year, each) for each in questions).items()
        },
        "by_discipline": {group: _measure(members) for group, members in by_discipline.items()},
        "positions": [_count_places(options, members, key) for options, members in by_options.items()],
        "with_images": images.total(),
        "images_by_discipline": dict(sorted(images.items())),
    }


def _group(pairs: Iterable[tuple[Hashable, Question]]) -> dict[Any, list[Question]]:
    groups: dict[Any, list[Question]] = {}
    for name, question in pairs:
        groups.setdefault(name, []).append(question)
    return {name: groups[name] for name in sorted(groups.keys() - {None})}


def _measure(questions: Sequence[Question]) -> dict[str, dict[str, dict[str, Any]]]:
    texts = {
        "questions": [question.stem for question in questions],
        "answers": [option.text for question in questions for option in question.options],
    }
    lengths = {
        part: {"words": [len(text.split()) for text in group], "characters": [*map(len, group)]}
        for part, group in texts.items()
    }
    return {part: {unit: _spread(values) for unit, values in units.items()} for part, units in lengths.items()}


def _spread(values: Sequence[int]) -> dict[str, Any]:
    return {
        "n": len(values),
        "mean": float(np.mean(values)),
        "deviation": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        "most": max(values),
        "quantiles": np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist(),
    }


def _count_places(options: int, questions: Sequence[Question], key: AnswerKey) -> dict[str, Any]:
    places = Counter(question.option_numbers.index(key[question.key].number) for question in questions)
    right, expected = [places[place] for place in range(options)], len(questions) / options
    chi_square = sum((count - expected) ** 2 for count in right) / expected
    p = chi_square_tail(chi_square, options - 1)
    return {"options": options, "n": len(questions), "right": right, "chi_square": chi_square, "p": p}


def statistics_tables(statistics: Statistics) -> list[Table]:
    """Show one data set on the terminal: sizes, lengths, and places of right answers."""
    number = f"{statistics['questions']:,} questions of {statistics['exams']} exams"
    columns = {
        str(year): {name: years.get(year) for name, years in statistics["by_exam"].items()}
        for year in statistics["by_year"]
    }
    totals = {name: lengths["questions"]["words"]["n"] for name, lengths in statistics["by_discipline"].items()}
    columns |= {"All": totals, "With image": statistics["images_by_discipline"]}
    counts = {str(name): [column.get(name) or 0 for column in columns.values()] for name in totals}
    counts["all"] = [sum(filter(None, column.values())) for column in columns.values()]
    rows = [(name, *(f"{count:,}" for count in row)) for name, row in counts.items()]
    title = f"{statistics['name']} {statistics['language']} · {number}"
    tables = [Table(title, ("Discipline", *columns), tuple(rows), caption="Questions by discipline.")]
    tables += [lengths_table(statistics, "year")] if statistics["by_year"] else []
    most = max(group["options"] for group in statistics["positions"])
    rows = []
    for group in statistics["positions"]:
        places = [f"{number:,} ({percent(number / group['n'])})" for number in group["right"]]
        places += [NONE] * (most - group["options"])
        rows.append((str(group["options"]), f"{group['n']:,}", *places, p_value(group["p"])))
    headers = ("Options", "n", *map(str, range(1, most + 1)), "p")
    caption = "Questions whose right answer is first, second, ..., and percent. p: Pearson's test against equal shares."
    positions = Table("Place of the right answer", headers, tuple(rows), caption=caption)
    return [*tables, lengths_table(statistics, "discipline"), positions]


def lengths_table(statistics: Statistics, facet: Literal["year", "discipline"]) -> Table:
    """Build the table of how long questions and answers are."""
    rows = []
    for name, lengths in (*statistics[f"by_{facet}"].items(), ("all", statistics["overall"])):
        spreads = [lengths[part][unit] for part in ("questions", "answers") for unit in ("words", "characters")]
        numbers = [f"{decimal(spread['mean'])} ± {decimal(spread['deviation'])}" for spread in spreads]
        rows.append((str(name), f"{spreads[0]['n']:,}", *numbers))
    headers = (facet.capitalize(), "n", "Question words", "Characters", "Answer words", "Characters")
    title = f"Lengths by {facet} · {statistics['name']} {statistics['language']}"
    caption = "Means, with the standard deviation. Answers: each option on its own."
    return Table(title, headers, tuple(rows), caption=caption)
