"""What a table of runs says, in sentences: which run is better, and which answered too little to be judged."""

from collections.abc import Sequence

from medexam.experiments.compare.ranking import find_standing, is_rankable, why_unranked
from medexam.experiments.compare.runs import run_names
from medexam.experiments.report.silences import silences
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.shown import name_measure, show_measure
from medexam.measures.verdicts import NAMED, join
from medexam.tables import percent


def findings(runs: Sequence[StoredRun]) -> list[str]:
    """Describe runs of one family in sentences, the verdict first; empty if there is nothing to say."""
    return [*filter(None, [lead(runs)]), *remarks(runs)]


def remarks(runs: Sequence[StoredRun]) -> list[str]:
    """Describe what else a reader should know of the scores."""
    return [*filter(None, [above_chance(runs)]), *describe_readings(runs), *silences(runs)]


def describe_readings(runs: Sequence[StoredRun]) -> list[str]:
    """Describe what counts as replies are read strictly and leniently: a sentence for each run where that differs."""
    sentences = []
    for run, name in zip(runs, run_names(runs) if len(runs) > 1 else [""], strict=True):
        if (readings := run.metrics.readings) is not None:
            score_note = " (the score)" if run.record.cell.program.read_as == "lenient" else ""
            strict, lenient = (
                [percent((count or 0) / scores.n) for count in (scores.right, scores.unanswered)]
                for scores in (readings["strict"], readings["lenient"])
            )
            sentences.append(
                f"{name and f'{name}: '}strict {strict[0]} % ({strict[1]} % without an answer); read "
                f"leniently{score_note} {lenient[0]} % ({lenient[1]} %)."
            )
    return sentences


def lead(runs: Sequence[StoredRun]) -> str:
    """Write what is said first: who leads among the runs on the same questions, a sentence for each such group."""
    names = dict(zip(map(id, runs), run_names(runs), strict=True))
    groups: dict[tuple[str, frozenset[str]], list[StoredRun]] = {}
    for run in runs:
        groups.setdefault((run.record.cell.dataset.label, frozenset(run.record.questions)), []).append(run)
    standings = [find_standing(group, [names[id(run)] for run in group]) for group in groups.values()]
    return " ".join(standing.sentence for standing in standings if standing) or _best_alone(runs, names)


def above_chance(runs: Sequence[StoredRun]) -> str:
    """Say which whole runs lie above what a uniform choice has right, by their 95 % intervals; empty if none can."""
    tested, at_chance = 0, []
    for run, name in zip(runs, run_names(runs), strict=True):
        first = next(iter(run.metrics.measures.values()), None)
        if run.complete and first is not None and first.interval and first.chance is not None:
            tested += 1
            at_chance += [name] if first.interval[0] <= first.chance else []
    if not tested:
        return ""
    if not at_chance:
        subject = {1: "The run is", 2: "Both runs are"}.get(tested, f"All {tested} runs are")
        return f"{subject} above chance by 95 % intervals."
    if len(at_chance) == tested:
        cause = "the model may be too small for these exams, or the questions too few"
        return f"No run is shown to be above chance by its 95 % interval: {cause}."
    not_above = join(at_chance) if len(at_chance) <= NAMED else f"{len(at_chance)} runs"
    return (
        f"By their 95 % intervals {tested - len(at_chance)} of {tested} runs are above chance; "
        f"{not_above} {'is' if len(at_chance) == 1 else 'are'} not shown to be."
    )


def _best_alone(runs: Sequence[StoredRun], names: dict[int, str]) -> str:
    """Describe the score of the only run that can be ranked; of several that asked something else, how they differ."""
    if (reason := why_unranked(runs)) is not None:
        return reason
    rankable_runs = [run for run in runs if is_rankable(run)] if len(runs) > 1 else list(runs)
    if len(rankable_runs) != 1 or rankable_runs[0].score is None:
        return ""
    (run,) = rankable_runs
    name, measure = next(iter(run.metrics.measures.items()))
    chance = "" if measure.chance is None else f"; chance is {percent(measure.chance)} %"
    alone = "" if len(runs) == 1 else "; no other run here can be ranked"
    what = f"% of {run.metrics.n:,} questions right" if run.metrics.right is not None else f"% {name_measure(name)}"
    return f"{names[id(run)]} has {show_measure(measure)} {what}{chance}{alone}."
