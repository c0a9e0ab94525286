"""Runs on two sorts of questions, such as exams before and after a date: the difference, and a control's beside it.

A difference that the control has too is of the questions; what a run has beyond it is of the run.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.measures import FEW_CLUSTERS, Difference, describe_resampling, signed
from medexam.tables import NONE, Table, percent
from medexam_companions.analysis.contrasts import Floats, difference_of_means

CAVEAT = "None of this shows what a model was trained on: exams differ in difficulty, and stated cutoffs may be wrong."
PER_LENGTH = {"token_mean": "a nat per token", "min_k": "a nat per token", "byte": "a nat per byte"}
"""Norm of a likelihood whose scores do not grow with the length of an option -> its unit."""


@dataclass(frozen=True)
class SideWords:
    """What the two sides are called."""

    title: str
    headers: tuple[str, str]
    phrases: tuple[str, str]
    """Behind a count of questions, and behind `does better` and `than`."""
    neither: str
    """Why questions are left out."""
    cause: str
    """What a run that does better on the first side, beyond its control, is consistent with."""


def judge(sentence: str, difference: Difference, cause: str, *, sign: int = 1) -> str:
    """End a sentence by what a difference of that sign is consistent with, if its interval lies on one side of 0."""
    if difference.interval is None or not difference.excludes_zero or sign * difference.value < 0:
        return f"{sentence}, which is no sign of remembered questions."
    return f"{sentence}. This is consistent with {cause}."


def contrast_sides(
    words: SideWords, first: NDArray[np.bool_], second: NDArray[np.bool_], compared: ComparisonScope
) -> ComparisonSection:
    """Contrast the runs on the scored items that `first` and `second` select, at least one each.

    `--json` has fractions of 1, and log-probabilities in nats.
    """
    names, sides, clusters = compared.names, (first, second), compared.statistics.clusters
    exams_of = np.array(compared.scored.clusters)
    counts = [(int(side.sum()), len({*exams_of[side]})) for side in sides]
    leftover = int((~first & ~second).sum())
    questions = " and ".join(
        f"{count:,} questions {phrase} ({exams:,} {clusters})"
        for phrase, (count, exams) in zip(words.phrases, counts, strict=True)
    )
    left_out = f" Left out, because {words.neither}: {leftover:,}." if leftover else ""
    measures = {"accuracy": (compared.scored.first, "accuracy", "percentage points")}
    if (likelihoods := _log_probabilities(compared)) is not None:
        measures["log_probability"] = likelihoods
    sizes = zip(words.headers, counts, strict=True)
    document: dict[str, Any] = {
        "not_told": leftover,
        **{header.lower(): {"n": count, "clusters": exams} for header, (count, exams) in sizes},
    }

    def contrast(scores: Floats) -> Difference:
        return difference_of_means(scores[first], [*exams_of[first]], scores[second], [*exams_of[second]])

    tables, sentences = [], []
    for measure, (values, noun, unit) in measures.items():
        rows, kinds, document[measure] = [], set(), {}
        for place, (key, name, run) in enumerate(zip(compared.run_keys, names, values, strict=True)):
            means = [float(run[side].mean()) for side in sides]
            difference, against = contrast(run), contrast(run - values[0]) if place else None
            kinds |= {each.resampled for each in (difference, against) if each}
            document[measure][key] = {
                "means": means,
                "difference": difference.model_dump(mode="json"),
                "against_control": against and against.model_dump(mode="json"),
            }
            rows.append((name, *map(percent, means), signed(difference), signed(against) if against else NONE))
            if against:
                better = f"{name} has {signed(against)} {unit} of {noun} on questions {words.phrases[0]}"
                beyond = f"over those {words.phrases[1]}, beyond what {names[0]} has"
                sentences.append(judge(f"{better} {beyond}", against, words.cause))
        caption = (
            f"Mean {noun} ({unit}) of {questions}. Difference: the first minus the second, with "
            f"95 % intervals ({describe_resampling(kinds, 'bootstrap', clusters)}), which are rough under "
            f"{FEW_CLUSTERS} {clusters} a side. Against control: minus the difference of {names[0]}, question "
            f"by question. {CAVEAT}{left_out}"
        )
        headers = ("Run", *words.headers, "Difference", "Against control")
        tables.append(Table(f"Contamination: {words.title}, {noun}", headers, tuple(rows), caption=caption))
    return ComparisonSection("cutoff", sentences, document, tables)


def _log_probabilities(compared: ComparisonScope) -> tuple[Floats, str, str] | None:
    """Read how likely run i finds the exam's words of question j, at row i and column j; None unless all read them
    alike. Noun and unit stand beside it.

    The words are the question's second half where that is what is read, else all options as they are: the mean of their
    scores. Scores must be by length or by the least likely tokens: others grow with the length.
    """
    cells = [record.cell for record in compared.records]
    settings = [(cell.program.model_dump(), cell.dataset.alter) for cell in cells]
    (one, *others) = {(program.get("read") == "option_text" and program["norm"], alter) for program, alter in settings}
    norm, alter = one
    rows = [
        [(run[key].option_scores or {}, exam_set.golds[key].number) for key in compared.scored.keys]
        for run, exam_set in zip(compared.predictions, compared.sets, strict=True)
    ]
    if others or norm not in PER_LENGTH or (alter and alter.how) not in {None, "question_continued"}:
        return None
    if not all(scores for row in rows for scores, _ in row):
        return None
    if alter is None:
        values, words = [[float(np.mean([*scores.values()])) for scores, _ in row] for row in rows], "options"
    else:
        values, words = [[scores[gold] for scores, gold in row] for row in rows], "second halves"
    return np.array(values), f"log-probability of the {words} ({norm})", f"hundredths of {PER_LENGTH[norm]}"
