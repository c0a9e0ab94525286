"""What a table of runs says, in sentences: which run is better, and which answered too little to be judged."""

from collections import Counter
from collections.abc import Sequence

from medexam.experiments.compare.ranking import find_standing
from medexam.experiments.compare.runs import run_names
from medexam.experiments.store.stored_run import AnyRun
from medexam.formatting import percent
from medexam.predictions import Prediction, Reason, Status

SILENT = 0.1
"""Share of questions without an answer from which on a reader is told why."""
_NOTHING = (Reason.UNPARSED, Reason.TRUNCATED, Reason.TRUNCATED_THINKING)
QUOTED = 60
"""Characters that are shown of a reply."""


def findings(runs: Sequence[AnyRun]) -> list[str]:
    """Sentences on runs of one family; empty if there is nothing to say."""
    names = dict(zip(map(id, runs), run_names(runs), strict=True))
    told = [_silence(run, names[id(run)]) for run in runs]
    return [*_standing(runs, names), *filter(None, told)]


def _standing(runs: Sequence[AnyRun], names: dict[int, str]) -> list[str]:
    standing = find_standing(runs)
    if standing is None:
        return []
    name, accuracy = names[id(standing.first)], percent(standing.first.metrics.accuracy)
    if not standing.level:
        return [f"{name} is better than every other run here: accuracy {accuracy} % (McNemar's test)."]
    level = [names[id(run)] for run in standing.level]
    several = f"{', '.join(level[:-1])} and {level[-1]} are" if len(level) > 1 else f"{level[0]} is"
    return [f"{name} has the most right answers, {accuracy} %; {several} not told apart from it (McNemar's test)."]


def _silence(run: AnyRun, name: str) -> str | None:
    """How much a run left unanswered, with a reply that held no answer; None if little, or no words are missing."""
    metrics = run.metrics
    if not (metrics.n and run.record.cell.program.could_be_guided) or metrics.unanswered / metrics.n < SILENT:
        return None
    asked = set(run.record.questions)
    silent = [said for said in run.folder.scan_predictions() if said.question in asked and _says_nothing(said)]
    if not silent:
        return None
    reasons = Counter(said.reason for said in silent)
    cut = _cut(reasons[Reason.TRUNCATED], reasons[Reason.TRUNCATED_THINKING])
    example = " ".join((silent[0].reply or "").split())
    quoted = example if len(example) <= QUOTED else f"{example[:QUOTED].rstrip()} ..."
    return (
        f'{name}: {len(silent):,} of {metrics.n:,} replies held no legal answer{cut}, such as "{quoted}"; '
        "program.answer_format=guided makes that impossible."
    )


def _cut(answers: int, thoughts: int) -> str:
    """How many replies were cut at their budget, of them how many in their thinking."""
    if not answers + thoughts:
        return ""
    thinking = f", {thoughts:,} of them in their thinking (truncated_thinking)" if thoughts else ""
    return f" ({answers + thoughts:,} were cut at their budget{thinking})"


def _says_nothing(said: Prediction) -> bool:
    return said.status is Status.UNANSWERED and said.reason in _NOTHING
