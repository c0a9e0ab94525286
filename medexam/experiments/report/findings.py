"""What a table of runs says, in sentences: which run is better, and which answered too little to be judged."""

from collections.abc import Sequence

from medexam.experiments.compare.ranking import describe_difference, find_standing, is_rankable
from medexam.experiments.compare.runs import run_names
from medexam.experiments.report.silences import silences
from medexam.experiments.store.stored_run import AnyRun
from medexam.metrics import Metrics
from medexam.specs.programs.replies import ReplySpec
from medexam.tables import percent, with_interval

MOST_SILENT = 0.5
"""Share of questions without a legal answer from which a run says nothing of what its model knows."""
NAMED = 4
"""Runs that a sentence names; of more it gives the number."""


def findings(runs: Sequence[AnyRun]) -> list[str]:
    """Describe runs of one family in sentences; empty if there is nothing to say."""
    names = dict(zip(map(id, runs), run_names(runs), strict=True))
    return [*_standing(runs, names), *describe_chance(runs), *describe_readings(runs), *silences(runs)]


def describe_chance(runs: Sequence[AnyRun]) -> list[str]:
    """Say in a sentence that no model here is shown to be above chance; empty if one is, or if no model was asked.

    A run without an answer to most questions shows nothing of that kind, and is left aside.
    """
    asked = [
        run
        for run in runs
        if run.record.cell.program.asks_model
        and isinstance(run.metrics, Metrics)
        and (run.metrics.unanswered_ratio or 0) < MOST_SILENT
    ]
    if not asked or not all(run.complete and run.metrics.n and _is_at_chance(run.metrics) for run in asked):
        return []
    models = {run.record.cell.model for run in asked}
    subject = "this model is" if len(models) == 1 else "these models are"
    how_many = "All answer" if len(asked) > 1 else "It answers"
    return [
        f"{how_many} at chance level: {subject} too small for these exams, or the questions are too few to show more."
    ]


def _is_at_chance(metrics: Metrics) -> bool:
    """Return whether the interval of the accuracy does not lie above what a uniform choice has right."""
    interval, chance = metrics.accuracy_interval, metrics.chance_accuracy
    return interval is not None and chance is not None and interval[0] <= chance


def describe_readings(runs: Sequence[AnyRun]) -> list[str]:
    """Describe what counts as replies are read strictly and leniently: a sentence a run, one for all where both agree.

    Nothing is said of a run that does not answer freely, or was stored before there were two readers.
    """
    names = run_names(runs) if len(runs) > 1 else [""]
    equal = [name or "it" for run, name in zip(runs, names, strict=True) if _reads_equally(run)]
    subject = f"{len(equal)} runs" if len(equal) > NAMED else _join(equal)
    agreement = [f"Read leniently, {subject} {'scores' if len(equal) == 1 else 'score'} the same."] if equal else []
    return [*filter(None, map(_readings, runs, names)), *agreement]


def _reads_equally(run: AnyRun) -> bool:
    metrics, record = run.metrics, run.record
    program = record.cell.program
    read_by_both = isinstance(program, ReplySpec) and program.could_be_guided
    return isinstance(metrics, Metrics) and metrics.n > 0 and metrics.readings is None and read_by_both


def _join(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _readings(run: AnyRun, name: str) -> str | None:
    metrics = run.metrics
    if not isinstance(metrics, Metrics) or metrics.readings is None:
        return None
    strict, lenient = metrics.readings["strict"], metrics.readings["lenient"]
    score_note = " (the score)" if run.record.cell.program.read_as == "lenient" else ""
    return (
        f"{name and f'{name}: '}strict {percent(strict.accuracy)} % ({percent(strict.unanswered_ratio)} % without an "
        f"answer); read leniently{score_note} {percent(lenient.accuracy)} % ({percent(lenient.unanswered_ratio)} %)."
    )


def lead(runs: Sequence[AnyRun]) -> str:
    """Write what a page says first: who leads among the runs on the same questions, a sentence for each such group."""
    names = dict(zip(map(id, runs), run_names(runs), strict=True))
    groups: dict[tuple[str, frozenset[str]], list[AnyRun]] = {}
    for run in runs:
        groups.setdefault((run.record.cell.dataset.label, frozenset(run.record.questions)), []).append(run)
    sentences = [sentence for group in groups.values() for sentence in _standing(group, names)]
    return " ".join(sentences) or _best_alone(runs, names)


def above_chance(runs: Sequence[AnyRun]) -> str:
    """Say which whole runs lie above what a uniform choice has right, by their 95 % intervals; empty if none can."""
    names = dict(zip(map(id, runs), run_names(runs), strict=True))
    tested = [run for run in runs if run.complete and isinstance(run.metrics, Metrics) and run.metrics.n]
    tested = [run for run in tested if run.metrics.accuracy_interval and run.metrics.chance_accuracy is not None]
    if not tested:
        return ""
    at_chance = [names[id(run)] for run in tested if _is_at_chance(run.metrics)]
    if len(tested) == 1:
        return f"By its 95 % interval it is {'not shown to be ' if at_chance else ''}above chance."
    if not at_chance:
        subject = "Both" if len(tested) == 2 else f"All {len(tested)}"
        return f"{subject} runs are above chance by their 95 % intervals."
    if len(at_chance) == len(tested):
        return "No run is shown to be above chance by its 95 % interval."
    not_above = _join(at_chance) if len(at_chance) <= NAMED else f"{len(at_chance)} runs"
    return (
        f"By their 95 % intervals {len(tested) - len(at_chance)} of {len(tested)} runs are above chance; "
        f"{not_above} {'is' if len(at_chance) == 1 else 'are'} not shown to be."
    )


def _best_alone(runs: Sequence[AnyRun], names: dict[int, str]) -> str:
    """Describe the score of the only run that can be ranked; of several that asked something else, how they differ."""
    difference = describe_difference(runs)
    if difference is not None:
        return f"The runs are not ranked: they asked {difference}."
    rankable_runs = [run for run in runs if is_rankable(run)] if len(runs) > 1 else list(runs)
    if (
        len(rankable_runs) != 1
        or not rankable_runs[0].benchmark.right_or_wrong
        or rankable_runs[0].metrics.accuracy is None
    ):
        return ""
    metrics = rankable_runs[0].metrics
    accuracy = with_interval(percent(metrics.accuracy), metrics.accuracy_interval)
    chance = "" if metrics.chance_accuracy is None else f"; chance is {percent(metrics.chance_accuracy)} %"
    alone = "" if len(runs) == 1 else "; no other run here can be ranked"
    return f"{names[id(rankable_runs[0])]} has {accuracy} % of {metrics.n:,} questions right{chance}{alone}."


def _standing(runs: Sequence[AnyRun], names: dict[int, str]) -> list[str]:
    standing = find_standing(runs)
    if standing is None:
        return []
    name, accuracy = names[id(standing.first)], percent(standing.first.metrics.accuracy)
    if not standing.level:
        return [f"{name} is better than every other run here: accuracy {accuracy} % (McNemar's test)."]
    if not standing.is_tested:
        return [f"{name} has the most right answers, {accuracy} %; no test was made: predictions.parquet is missing."]
    level = [names[id(run)] for run in standing.level]
    others = f"{len(level)} of the {len(runs) - 1} others" if len(level) > NAMED else _join(level)
    return [f"{name} has the most right answers, {accuracy} %; no difference from {others} is shown (McNemar's test)."]
