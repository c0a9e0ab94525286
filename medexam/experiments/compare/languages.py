"""The same questions in several languages, asked by the same program and model: translation and knowledge errors.

A question that is right in one language alone is a suspect of its translation; one that is wrong in both, with the same
answer, rather is something the model does not know. Which of two wrong causes it was nobody can tell from answers: the
report counts them and names the suspects. It reads stored runs and asks nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from medexam.errors import SpecError
from medexam.experiments.compare.result import Comparison, run_documents
from medexam.experiments.compare.runs import compare_runs
from medexam.experiments.store.data_changes import load_items
from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.metrics.paired.pairs import adjust_holm
from medexam.metrics.paired.results import Paired
from medexam.specs.identity import differing_keys


@dataclass(frozen=True)
class LanguagePair:
    """Two of several languages, on the questions that the runs in all of them have scored."""

    languages: tuple[str, str]
    paired: Paired
    """The first language is the baseline: a difference is the second's score minus the first's."""
    p_adjusted: float
    """McNemar's p after Holm, over all pairs of languages."""
    same_wrong: int
    """Questions that both have wrong with the same answer."""


@dataclass(frozen=True)
class CrossLanguages(Comparison):
    """Runs that differ in language alone, on the questions that all of them have scored."""

    languages: tuple[str, ...]
    """One a run, in their order."""
    language_pairs: tuple[LanguagePair, ...]
    """Every two languages, in the order of the runs."""
    right_in: Mapping[str, tuple[str, ...]]
    """Question -> the languages that it is right in, in the order of the runs."""
    method: ClassVar[str] = "languages"

    def right(self, language: str) -> int:
        """Count the questions that are right in a language."""
        return sum(language in languages for languages in self.right_in.values())

    def counts(self) -> list[int]:
        """Count the questions by the number of languages that they are right in; element `i` is right in `i`."""
        counts = Counter(map(len, self.right_in.values()))
        return [counts[number] for number in range(len(self.languages) + 1)]

    def right_alone(self, language: str) -> list[str]:
        """List the questions that are right in this language and wrong in all others."""
        return [question for question, languages in self.right_in.items() if languages == (language,)]

    def wrong_alone(self, language: str) -> list[str]:
        """List the questions that are wrong in this language and right in all others."""
        others = tuple(other for other in self.languages if other != language)
        return [question for question, languages in self.right_in.items() if languages == others]

    def document(self) -> dict[str, Any]:
        """Build what `--json` prints, JSON-ready; accuracies and differences are fractions of 1."""
        n = len(self.questions)
        return {
            "runs": run_documents(self),
            "languages": list(self.languages),
            "dropped": asdict(self.exclusions),
            "notes": list(self.notes),
            "questions": n,
            "accuracy": {language: self.right(language) / n for language in self.languages},
            "right_in_how_many": self.counts(),
            "right_alone": {language: self.right_alone(language) for language in self.languages},
            "wrong_alone": {language: self.wrong_alone(language) for language in self.languages},
            "pairs": [
                {
                    "languages": list(pair.languages),
                    "difference": pair.paired.accuracy.model_dump(mode="json"),
                    "both_right": pair.paired.flips.both_right,
                    f"only_{pair.languages[0]}": len(pair.paired.flips.right_to_wrong),
                    f"only_{pair.languages[1]}": len(pair.paired.flips.wrong_to_right),
                    "neither": pair.paired.flips.both_wrong,
                    "neither_with_the_same_answer": pair.same_wrong,
                    "same_answer": pair.paired.same_answer,
                    "kappa": pair.paired.kappa,
                    "mcnemar_p": pair.paired.flips.p,
                    "p_holm": pair.p_adjusted,
                }
                for pair in self.language_pairs
            ],
        }


def compare_run_languages(folders: Sequence[RunFolder]) -> CrossLanguages:
    """Set runs side by side that differ in language alone.

    Raises `SpecError` if there is one run, two ask in one language or differ in more, and what `compare_runs`
    raises.
    """
    records = [folder.read_record() for folder in folders]
    languages = _check_languages(folders, records)
    comparison = compare_runs(folders)
    benchmark = comparison.runs[0].benchmark
    answers = [folder.read_predictions() for folder in folders]
    golds = load_items(folders[0]).golds

    def same_wrong(first: int, second: int) -> int:
        return sum(
            answers[first][question].answer is not None
            and answers[first][question].answer == answers[second][question].answer
            and not benchmark.is_right(answers[first][question], golds[question])
            for question in comparison.questions
        )

    paired: list[tuple[int, int, Paired]] = []
    for first in range(len(folders) - 1):
        # All runs are compared each time, so that every pair is on the same questions.
        turned = comparison if first == 0 else compare_runs([*folders[first:], *folders[:first]])
        for place, run in enumerate(turned.statistics.paired[: len(folders) - 1 - first], start=first + 1):
            paired.append((first, place, run.paired))
    adjusted = adjust_holm([pair.flips.p for _, _, pair in paired])
    return CrossLanguages(
        **vars(comparison),
        languages=languages,
        language_pairs=tuple(
            LanguagePair((languages[first], languages[second]), pair, p, same_wrong(first, second))
            for (first, second, pair), p in zip(paired, adjusted, strict=True)
        ),
        right_in={
            question: tuple(
                language
                for language, predictions in zip(languages, answers, strict=True)
                if benchmark.is_right(predictions[question], golds[question])
            )
            for question in comparison.questions
        },
    )


def _check_languages(folders: Sequence[RunFolder], records: Sequence[RunRecord]) -> tuple[str, ...]:
    """Return the language of each run; raise `SpecError` unless the runs differ in it and in nothing else."""
    if len(records) < 2:
        raise SpecError(
            f"--languages takes two runs or more, and {len(records)} were given: name one run in each language"
        )
    if any(load_items(folder).in_words for folder in folders):
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
