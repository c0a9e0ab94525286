"""The same questions in two languages, asked by the same program and model: translation errors and knowledge errors.

A question that is right in one language alone is a suspect of its translation; one that is wrong in both, with the same
answer, rather is something the model does not know. Which of two wrong causes it was nobody can tell from answers: the
report counts them and names the suspects. It reads stored runs and asks nothing.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from medexam.benchmarks import find_benchmark
from medexam.benchmarks.paired import PairedRun
from medexam.errors import SpecError
from medexam.experiments.compare.result import Comparison, run_documents
from medexam.experiments.compare.runs import compare_runs
from medexam.experiments.store.run_folder import RunFolder, RunRecord
from medexam.metrics.paired.results import Flips
from medexam.specs.identity import differing_keys


@dataclass(frozen=True)
class Consistency(Comparison):
    """Two runs that differ in language alone, on the questions that both have scored."""

    pair: PairedRun
    languages: tuple[str, str]
    same_wrong: tuple[str, ...]
    """Keys of the questions that both have wrong with the same answer; leaving a question unanswered is no answer."""
    method: ClassVar[str] = "languages"

    @property
    def flips(self) -> Flips:
        """Both right, only one, neither, and McNemar's exact test."""
        return self.pair.paired.flips

    def document(self) -> dict[str, Any]:
        """Build what `--json` prints, JSON-ready."""
        flips = self.flips
        first, second = self.languages
        return {
            "runs": run_documents(self),
            "languages": list(self.languages),
            "dropped": asdict(self.exclusions),
            "notes": list(self.notes),
            "questions": flips.n,
            "both_right": flips.both_right,
            f"only_{first}": list(flips.right_to_wrong),
            f"only_{second}": list(flips.wrong_to_right),
            "neither": flips.both_wrong,
            "neither_with_the_same_answer": list(self.same_wrong),
            "mcnemar_p": flips.p,
            "same_answer": self.pair.paired.same_answer,
        }

    def values(self) -> dict[str, float]:
        """Count how many questions are right in both languages, in each alone, and in neither: name -> value."""
        document = self.document()
        first, second = self.languages
        return {
            "n": float(document["questions"]),
            "dropped": float(self.exclusions.total),
            **{name: float(document[name]) for name in ("both_right", "neither", "same_answer")},
            **{name: float(len(document[name])) for name in (f"only_{first}", f"only_{second}")},
            "neither_with_the_same_answer": float(len(self.same_wrong)),
            "p": float(document["mcnemar_p"]),
        }


def check_consistency(folders: Sequence[RunFolder]) -> Consistency:
    """Set two runs side by side that differ in language alone.

    Raises `SpecError` where they are not two, ask in one language, or differ in more, and what `compare_runs` raises.
    """
    if len(folders) != 2:
        raise SpecError(f"--languages takes two runs, and {len(folders)} were given: name one run in each language")
    records = [folder.read_record() for folder in folders]
    benchmarks = [find_benchmark(record.cell.dataset) for record in records]
    if not all(benchmark.right_or_wrong for benchmark in benchmarks):
        raise SpecError(
            "--languages looks at questions that are right or wrong; these runs answer in words: leave it out, runs in "
            "two languages are compared by their measures"
        )
    first, second = (record.cell.dataset.language for record in records)
    if first == second:
        raise SpecError(f"both runs ask in {first}: name runs in two languages, or compare them without --languages")
    if others := differing(records[0], records[1]):
        raise SpecError(
            f"the runs differ in more than their language ({', '.join(others)}): run one spec with the other's "
            "language, or compare them without --languages"
        )
    comparison = compare_runs(folders)
    answers = [folder.read_predictions() for folder in folders]
    golds = benchmarks[0].load(records[0].cell.dataset.whole).golds
    same = tuple(
        question
        for question in comparison.questions
        if answers[0][question].answer is not None
        and answers[0][question].answer == answers[1][question].answer
        and not benchmarks[0].is_right(answers[0][question], golds[question])
    )
    return Consistency(
        **vars(comparison), pair=comparison.statistics.paired[0], languages=(first, second), same_wrong=same
    )


def differing(first: RunRecord, second: RunRecord) -> list[str]:
    """List what two runs differ in beside their language, as dotted keys.

    The files of a data set, with their translations, and the words of a prompt belong to their language; so does the
    language of the queries if both specs say the same of it.
    """
    dotted_keys = differing_keys(first.identity, second.identity)
    language_keys = {"dataset.language", "dataset.fingerprint", "twins"}
    retrievals = [record.cell.program.retrieval for record in (first, second)]
    if len({retrieval and retrieval.query_language for retrieval in retrievals}) == 1:
        language_keys.add("program.query_language")
    return [key for key in dotted_keys if key not in language_keys and not key.startswith("words")]
