"""The same questions in two languages, asked by the same program and model: translation errors and knowledge errors.

A question that is right in one language alone is a suspect of its translation; one that is wrong in both, with the same
answer, rather is something the model does not know. Which of two wrong causes it was nobody can tell from answers: the
report counts them and names the suspects. It reads stored runs and asks nothing.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from medexam.datasets import load_exam_set
from medexam.errors import SpecError
from medexam.experiments.comparing import compare_runs
from medexam.experiments.comparison import Comparison, run_documents
from medexam.experiments.comparison_markdown import render_comparison
from medexam.experiments.comparison_tables import equals, headline
from medexam.experiments.formatting import percent, with_interval
from medexam.experiments.retrieval_tables import p_value
from medexam.experiments.run_folder import RunFolder, RunRecord
from medexam.experiments.summary import ExamRun
from medexam.experiments.tables import Table, TerminalTable
from medexam.metrics.intervals import rate_interval
from medexam.metrics.paired_results import Flips
from medexam.specs.identity import differences

SHOWN = 10
"""Questions that the terminal names."""


@dataclass(frozen=True)
class Consistency:
    """Two runs that differ in language alone, on the questions that both have scored."""

    comparison: Comparison
    languages: tuple[str, str]
    same_wrong: tuple[str, ...]
    """Keys of the questions that both have wrong with the same answer; leaving a question unanswered is no answer."""

    @property
    def runs(self) -> tuple[ExamRun, ...]:
        """The run in the first language, then the one in the second."""
        return self.comparison.runs

    @property
    def corrected(self) -> tuple[str, ...]:
        """What is said of golds that were corrected since a run was scored."""
        return self.comparison.corrected

    @property
    def flips(self) -> Flips:
        """Both right, only one, neither, and McNemar's exact test."""
        return self.comparison.pairs[0].paired.flips

    def document(self) -> dict[str, Any]:
        """What `--json` prints, JSON-ready."""
        flips = self.flips
        first, second = self.languages
        return {
            "runs": run_documents(self.comparison),
            "languages": list(self.languages),
            "dropped": asdict(self.comparison.dropped),
            "notes": list(self.comparison.notes),
            "questions": flips.n,
            "both_right": flips.both_right,
            f"only_{first}": list(flips.right_to_wrong),
            f"only_{second}": list(flips.wrong_to_right),
            "neither": flips.both_wrong,
            "neither_with_the_same_answer": list(self.same_wrong),
            "mcnemar_p": flips.p,
            "same_answer": self.comparison.pairs[0].paired.same_answer,
        }


def check_consistency(folders: Sequence[RunFolder]) -> Consistency:
    """Set two runs side by side that differ in language alone.

    Raises `SpecError` where they are not two, ask in one language, or differ in more, and what `compare_runs` raises.
    """
    if len(folders) != 2:
        raise SpecError(f"--languages takes two runs, and {len(folders)} were given: name one run in each language")
    records = [folder.read_record() for folder in folders]
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
    key = load_exam_set(records[0].cell.dataset.whole).key
    same = tuple(
        question
        for question in comparison.questions
        if answers[0][question].answer not in (None, key[question].number)
        and answers[0][question].answer == answers[1][question].answer
    )
    return Consistency(comparison, (first, second), same)


def differing(one: RunRecord, other: RunRecord) -> list[str]:
    """What two runs differ in beside their language, as dotted keys.

    The files of a data set, with their twins, and the words of a prompt belong to their language; so does the language
    of the queries if both specs say the same of it.
    """
    found = differences(one.identity, other.identity)
    own = {"dataset.language", "dataset.fingerprint", "twins"}
    queried = {getattr(record.cell.program, "query_language", None) for record in (one, other)}
    if len(queried) == 1:
        own.add("program.query_language")
    return [key for key in found if key not in own and not key.startswith("words")]


def build_consistency_tables(found: Consistency) -> list[TerminalTable]:
    """The tables, ready for `Console.print`; the first suspects only."""
    return [TerminalTable(table, caption) for table, caption in consistency_tables(found, SHOWN)]


def consistency_report(found: Consistency) -> str:
    """The same in Markdown, with what was compared, every suspect and where the runs lie."""
    tables = consistency_tables(found, shown=len(found.comparison.questions))
    return render_comparison(found.comparison, headline(found.comparison), [], tables)


def consistency_tables(found: Consistency, shown: int) -> list[tuple[Table, str]]:
    """The counts, the counts by discipline, and the first `shown` suspects, each with its caption."""
    first, second = found.languages
    pair = found.comparison.pairs[0]
    flips = found.flips
    counts = (
        ("both right", flips.both_right),
        (f"only {first}", len(flips.right_to_wrong)),
        (f"only {second}", len(flips.wrong_to_right)),
        ("neither", flips.both_wrong),
        ("  with the same wrong answer", len(found.same_wrong)),
    )
    rows = tuple(
        (name, str(number), with_interval(percent(number / flips.n), rate_interval(number, flips.n)))
        for name, number in counts
    )
    run = found.comparison.runs[0]
    title = " · ".join(filter(None, (run.program, run.model, f"{first} and {second}")))
    caption = (
        f"{flips.n} questions that both runs scored, percent with Wilson's 95 % interval. McNemar's exact test of the "
        f"two middle rows: p {equals(flips.p)}. Right in one language alone: "
        "look at the translation first. The same wrong answer in both: rather what the model does not know."
    )
    tables = [(Table(title, ("Right in", "Questions", "Percent"), rows), caption)]
    groups = tuple(
        (
            name,
            str(group.paired.n),
            str(group.paired.flips.both_right),
            str(len(group.paired.flips.right_to_wrong)),
            str(len(group.paired.flips.wrong_to_right)),
            str(group.paired.flips.both_wrong),
            p_value(group.p_adjusted),
        )
        for name, group in pair.by_discipline.items()
    )
    headers = ("Discipline", "n", "Both", f"Only {first}", f"Only {second}", "Neither", "p Holm")
    tables.append((Table("By discipline", headers, groups), "p: McNemar's, adjusted by Holm."))
    suspects = tuple((key, first) for key in flips.right_to_wrong) + tuple(
        (key, second) for key in flips.wrong_to_right
    )
    if suspects:
        count = f"first {shown} of {len(suspects)}" if len(suspects) > shown else str(len(suspects))
        named = Table(
            f"Right in one language alone ({count})", ("Question", "Right in"), suspects[:shown], text_columns=2
        )
        tables.append((named, "--json and --markdown FILE list all." if len(suspects) > shown else ""))
    return tables
