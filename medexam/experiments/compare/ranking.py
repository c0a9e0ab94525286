"""Which runs may be ranked by their scores, and which leads: whole ones of one model that asked the same questions.

It decides and says why; tables, pages and the terminal show it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from medexam.errors import DatasetError, EngineError, RunFolderError
from medexam.experiments.compare.runs import find_scope, mixed_notes
from medexam.experiments.store.stored_run import StoredRun, tell_models_apart
from medexam.measures.verdicts import find_case, leader_sentence


@dataclass(frozen=True)
class Standing:
    """The run with the highest score, and what may be said of it beside the others."""

    first: StoredRun
    is_best: bool
    """Whether it is better than every other one."""
    sentence: str


def find_standing(runs: Sequence[StoredRun], names: Sequence[str]) -> Standing | None:
    """Find who leads among those of `runs` that may be ranked; `names` are what tables call them, one each.

    None for fewer than two, without a right answer, and where answers are more or less right.
    """
    if why_unranked(runs) is not None:
        return None
    ranked = [each for each in zip(runs, names, strict=True) if is_rankable(each[0])]
    ranked.sort(key=lambda each: -(each[0].metrics.right or 0))
    if len(ranked) < 2 or not ranked[0][0].metrics.right:
        return None
    try:
        paired = find_scope(tuple(run.folder for run, _ in ranked)).statistics
    except (DatasetError, EngineError, RunFolderError) as error:
        return Standing(ranked[0][0], is_best=False, sentence=f"No run is shown to be better: {error}.")
    sentence = leader_sentence(paired, [name for _, name in ranked])
    return Standing(ranked[0][0], all(find_case(pair).verdict == "worse" for pair in paired.pairs), sentence)


def is_rankable(run: StoredRun) -> bool:
    """Return whether the run's score is one model's on all of its questions."""
    return run.complete and not run.mixed


def why_unranked(runs: Sequence[StoredRun]) -> str | None:
    """Explain why scores of `runs` are not ranked, and what compares them; None if they may be ranked."""
    difference = describe_difference(runs)
    if difference is None:
        return None
    return (
        f"Scores are not ranked: the runs asked {difference}. `medexam compare` sets runs of one data set side by side "
        "on the questions that they share."
    )


def ranking_notes(runs: Sequence[StoredRun]) -> list[str]:
    """List what a reader must know before ranking `runs` by a table of their scores; usually empty."""
    reason = why_unranked(runs)
    notes = [f"{note[0].upper()}{note[1:]}." for note in (*mixed_notes(runs), *tell_models_apart(runs)[1])]
    return notes if reason is None else [reason, *notes]


def describe_difference(runs: Sequence[StoredRun]) -> str | None:
    """Describe how questions of `runs` differ, as `different languages (en, es)`; None if all asked the same ones."""
    datasets = [run.record.cell.dataset for run in runs]
    for aspect, values in (
        ("data sets", [dataset.name for dataset in datasets]),
        ("languages", [dataset.language for dataset in datasets]),
        ("forms of the questions", [dataset.label for dataset in datasets]),
    ):
        if len(distinct := dict.fromkeys(values)) > 1:
            return f"different {aspect} ({', '.join(distinct)})"
    return None if len({frozenset(run.record.questions) for run in runs}) == 1 else "different questions"
