"""`medexam compare --languages`: the same questions in several languages, asked by the same program and model.

A question that is right in one language alone is a suspect of its translation; one that is wrong in both, with the same
answer, rather is something the model does not know. Which of two wrong causes it was nobody can tell from answers.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.benchmarks.measures import signed
from medexam.benchmarks.paired_tables import document_of
from medexam.distributions import WILSON, rate_interval
from medexam.errors import SpecError
from medexam.experiments.compare.section import ComparisonScope, ComparisonSection
from medexam.experiments.store.run_folder import RunRecord
from medexam.metrics.paired.pairs import NO_ANSWER, Sheet, compare_pair
from medexam.metrics.paired.results import PairedMeasure
from medexam.metrics.paired.significance import adjust_all
from medexam.specs.identity import differing_keys
from medexam.tables import NONE, Table, coefficient, p_value, percent, with_interval

SHOWN = 10
"""Questions that a table names; `--json` holds all."""


@dataclass(frozen=True)
class Languages(ComparisonSection):
    """Runs that differ in language alone, on the questions that all of them have scored."""

    languages: tuple[str, ...]
    """One a run, in their order."""
    sheet: Sheet
    pairs: dict[tuple[int, int], PairedMeasure]
    """Every two runs, by place -> the second beside the first, after Holm over all of them."""
    name = "languages"

    @property
    def right(self) -> NDArray[np.bool_]:
        """Row i: which questions are right in language i."""
        matches: NDArray[np.bool_] = self.sheet.first == 1
        return matches

    def alone(self, language: int, *, right: bool) -> list[str]:
        """List the questions that are right in this language and wrong in all others, or the other way."""
        others = np.delete(self.right, language, axis=0)
        here = self.right[language] & ~others.any(axis=0) if right else ~self.right[language] & others.all(axis=0)
        return [self.sheet.keys[place] for place in np.flatnonzero(here)]

    def same_wrong(self, first: int, second: int) -> int:
        """Count the questions that both have wrong with the same answer."""
        answers = self.sheet.answers
        if answers is None:
            return 0
        same = (answers[first] == answers[second]) & (answers[first] != NO_ANSWER)
        return int((same & ~self.right[first]).sum())

    def counts(self) -> list[int]:
        """Count the questions by the number of languages that they are right in; element `i` is right in `i`."""
        return [int(n) for n in np.bincount(self.right.sum(axis=0), minlength=len(self.languages) + 1)]

    def tables(self, names: Sequence[str]) -> list[Table]:  # noqa: ARG002
        """Build each language's scores, every two beside each other, the counts, and the first suspects."""
        n, places = len(self.sheet.keys), range(len(self.languages))
        rows = tuple(
            (
                language,
                str(right := int(self.right[place].sum())),
                with_interval(percent(right / n), rate_interval(right, n)),
                *(str(len(self.alone(place, right=is_right))) for is_right in (True, False)),
            )
            for place, language in enumerate(self.languages)
        )
        headers = ("Language", "Right", "Percent", "Right here alone", "Wrong here alone")
        caption = (
            f"{n} questions that all runs scored, percent with a 95 % interval ({WILSON}). Wrong in one language "
            "alone: look at its translation first. The same wrong answer in several: the model may not know it."
        )
        counts = tuple((str(place), str(count), percent(count / n)) for place, count in enumerate(self.counts()))
        tables = [
            Table(", ".join(self.languages), headers, rows, caption=caption),
            self._pair_table(),
            Table("Right in how many languages", ("Languages", "Questions", "Percent"), counts),
        ]
        # Of two languages, what is wrong in the one alone is right in the other alone: it is named once.
        alone = [(key, "wrong", self.languages[place]) for place in places for key in self.alone(place, right=False)]
        alone += [(key, "right", self.languages[place]) for place in places for key in self.alone(place, right=True)]
        suspects = list({suspect[0]: suspect for suspect in reversed(alone)}.values())[::-1]
        if suspects:
            count = f"first {SHOWN} of {len(suspects)}; --json lists all" if len(suspects) > SHOWN else len(suspects)
            title = f"Right or wrong in one language alone ({count})"
            tables.append(Table(title, ("Question", "It is", "In"), tuple(suspects[:SHOWN]), text_columns=3))
        return tables

    def _pair_table(self) -> Table:
        rows = tuple(
            (
                f"{self.languages[first]} and {self.languages[second]}",
                signed(pair.difference),
                *map(str, (flips.both_right, flips.right_to_wrong, flips.wrong_to_right, flips.both_wrong)),
                str(self.same_wrong(first, second)),
                percent(flips.same_answer),
                NONE if flips.kappa is None else coefficient(flips.kappa),
                p_value(pair.p_adjusted or 0.0),
            )
            for (first, second), pair in self.pairs.items()
            if (flips := pair.flips) is not None
        )
        headers = ("Languages", "Difference", "Both", "Only 1st", "Only 2nd", "Neither", "Same wrong")
        caption = (
            "Difference: accuracy of the second language minus the first's, in points, with a 95 % interval. Both to "
            "Same wrong: questions right in both, in one, in neither, and wrong with the same answer. Same answer: "
            "percent, right or wrong; kappa: Cohen's, of the answers. p: McNemar's exact test, after Holm over all."
        )
        return Table("Every two languages", (*headers, "Same answer", "Kappa", "p Holm"), rows, caption=caption)

    def sentences(self, names: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Write how many questions are right everywhere and nowhere."""
        counts = self.counts()
        return [f"{counts[-1]} questions are right in every language, {counts[0]} in none."]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build what `--json` says; runs stand under their languages."""
        n, places = len(self.sheet.keys), range(len(self.languages))
        return {
            "runs": dict(zip(keys, self.languages, strict=True)),
            "accuracy": {self.languages[place]: int(self.right[place].sum()) / n for place in places},
            "right_in_how_many": self.counts(),
            "right_alone": {self.languages[place]: self.alone(place, right=True) for place in places},
            "wrong_alone": {self.languages[place]: self.alone(place, right=False) for place in places},
            "pairs": [
                {
                    "languages": [self.languages[first], self.languages[second]],
                    **document_of({"": pair})[""],
                    "neither_with_the_same_answer": self.same_wrong(first, second),
                }
                for (first, second), pair in self.pairs.items()
            ],
        }


def find_languages(compared: ComparisonScope) -> Languages:
    """Set runs side by side that differ in language alone; raises `SpecError` if they differ in more."""
    languages = _check_languages(compared)
    sheet, places = compared.statistics.sheet, range(len(languages))
    pairs = {
        (first, second): next(iter(compare_pair(sheet, first, second).values()))
        for first in places
        for second in places[first + 1 :]
    }
    named = adjust_all([pairs])
    return Languages(languages, sheet, named[0])


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
    dotted_keys = differing_keys(first.identity, second.identity)
    language_keys = {"dataset.language", "dataset.fingerprint", "translations"}
    retrievals = [record.cell.program.retrieval for record in (first, second)]
    if len({retrieval and retrieval.query_language for retrieval in retrievals}) == 1:
        language_keys.add("program.query_language")
    return [key for key in dotted_keys if key not in language_keys and not key.startswith("words")]
