"""`medexam compare --languages`: the same questions in several languages, asked by the same program and model.

A question that is right in one language alone is a suspect of its translation; one that is wrong in both, with the same
answer, rather is something the model does not know. Which of two wrong causes it was nobody can tell from answers.
"""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from medexam.distributions import WILSON, rate_interval
from medexam.errors import SpecError
from medexam.experiments.compare.section import ComparisonScope, ComparisonSection
from medexam.experiments.store.run_folder import RunRecord
from medexam.measures.paired import NO_ANSWER, adjust_all, compare_pair
from medexam.measures.paired_tables import document_of
from medexam.specs.identity import differing_keys
from medexam.tables import Table, percent, with_interval


def find_languages(compared: ComparisonScope) -> ComparisonSection:
    """Set runs side by side that differ in language alone; raises `SpecError` if they differ in more."""
    languages, sheet = _check_languages(compared), compared.statistics.sheet
    places, right, answers = range(len(languages)), sheet.first == 1, np.asarray(sheet.answers)
    every_two = {(i, j): next(iter(compare_pair(sheet, i, j).values())) for i in places for j in places[i + 1 :]}
    pairs = adjust_all([every_two])[0]
    same_wrong = {
        (i, j): int(((answers[i] == answers[j]) & (answers[i] != NO_ANSWER) & ~right[i]).sum()) for i, j in pairs
    }

    def find_alone(marks: NDArray[np.bool_]) -> dict[str, list[str]]:
        """Map each language to the questions that have the mark in it and in no other."""
        alone = marks & (marks.sum(axis=0) == 1)
        return {name: np.array(sheet.keys)[row].tolist() for name, row in zip(languages, alone, strict=True)}

    right_alone, wrong_alone, n = find_alone(right), find_alone(~right), len(sheet.keys)
    rights = dict(zip(languages, right.sum(axis=1).tolist(), strict=True))
    counts = np.bincount(right.sum(axis=0), minlength=len(languages) + 1).tolist()
    document = {
        "runs": dict(zip(compared.run_keys, languages, strict=True)),
        "accuracy": {language: count / n for language, count in rights.items()},
        "right_in_how_many": counts,
        "right_alone": right_alone,
        "wrong_alone": wrong_alone,
        "pairs": [
            {"languages": [languages[i], languages[j]]}
            | document_of({"": pair})[""]
            | {"neither_with_the_same_answer": same_wrong[i, j]}
            for (i, j), pair in pairs.items()
        ],
    }
    rows = tuple(
        (
            language,
            str(count),
            with_interval(percent(count / n), rate_interval(count, n)),
            *(str(len(each[language])) for each in (right_alone, wrong_alone)),
        )
        for language, count in rights.items()
    )
    headers = ("Language", "Right", "Percent", "Right here alone", "Wrong here alone")
    caption = (
        f"{n} questions that all runs scored, percent with a 95 % interval ({WILSON}). Wrong in one language alone: "
        "look at its translation first; --json names the questions. The same wrong answer in several: the model may "
        "not know it."
    )
    table = Table(", ".join(languages), headers, rows, caption=caption)
    sentence = f"{counts[-1]} questions are right in every language, {counts[0]} in none."
    return ComparisonSection("languages", [sentence], document, [table])


def _check_languages(compared: ComparisonScope) -> tuple[str, ...]:
    """Return the language of each run; raise `SpecError` unless the runs differ in it and in nothing else."""
    records = compared.records
    if not compared.benchmark.right_or_wrong:
        raise SpecError(
            "--languages needs answers that are right or wrong, and these runs answer in words: leave it out; their "
            "measures are compared in any language"
        )
    languages = tuple(record.cell.dataset.language for record in records)
    language, times = Counter(languages).most_common(1)[0]
    if times > 1:
        count = "both" if len(records) == 2 else str(times)
        raise SpecError(
            f"{count} runs ask in {language}: name one run in each language, or compare them without --languages"
        )
    if others := sorted({key for record in records[1:] for key in differing(records[0], record)}):
        raise SpecError(
            f"the runs differ in more than their language ({', '.join(others)}): run one spec with the other's "
            "language, or compare them without --languages"
        )
    return languages


def differing(first: RunRecord, second: RunRecord) -> list[str]:
    """List what two runs differ in beside their language, as dotted keys.

    The files of a data set, with their translations, and the words of a prompt belong to their language; so does the
    language of the queries if both specs say the same of it.
    """
    language_keys = {"dataset.language", "dataset.fingerprint", "translations"}
    retrievals = [record.cell.program.retrieval for record in (first, second)]
    if len({retrieval and retrieval.query_language for retrieval in retrievals}) == 1:
        language_keys.add("program.query_language")
    keys = differing_keys(first.identity, second.identity)
    return [key for key in keys if key not in language_keys and not key.startswith("words")]
