"""What a table of runs says, in sentences: which run is better, what was not answered and why, and what helps."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from medexam.experiments.compare.ranking import find_standing, is_rankable, why_unranked
from medexam.experiments.compare.runs import run_names
from medexam.experiments.store.stored_run import StoredRun
from medexam.measures.shown import name_measure, show_measure
from medexam.measures.verdicts import NAMED, join
from medexam.model_calls import is_cut
from medexam.predictions import Prediction, Reason, Status
from medexam.tables import percent
from medexam.text import shorten


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


SILENT = 0.1
"""Share of questions without an answer from which on a reader is told why."""
_FAR_BELOW = 0.9
"""Share of its budget below which a cut reply ended at something else."""
_SAME_PLACE = 0.98
"""Share of the most tokens of a prompt and its reply above which all are taken to have filled the same context."""
CAUSES: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.UNPARSED: "replies without a legal answer",
        Reason.EMPTY: "replies without text",
        Reason.TRUNCATED: "replies cut at their budget",
        Reason.TRUNCATED_THINKING: "replies cut at their budget while thinking (truncated_thinking)",
        Reason.REFUSED: "questions refused by the model",
        Reason.FILTERED: "replies withheld by the provider's filter",
        Reason.CONTEXT_OVERFLOW: "prompts too long for the model's context",
        Reason.NOT_IN_CONTEXT: "quotations that are not in the text",
        Reason.FAULTED: "examples with an error in the module or the metric",
    }
)
"""Why an asked model gave no answer -> the words of a sentence; questions that a program left blank are none."""
_FREE = (Reason.UNPARSED, Reason.EMPTY, Reason.TRUNCATED, Reason.NOT_IN_CONTEXT)
"""Causes that guided answers exclude: a choice is made among what is legal, whatever else the model would write."""
_CHOICE = re.compile(r"->.*\banswer\s*:\s*(?:int\b|Literal\[)", re.DOTALL)
"""A signature whose answer is chosen among the options where it is guided."""


def silences(runs: Sequence[StoredRun]) -> list[str]:
    """Return a sentence for each run whose model left much unanswered."""
    return list(filter(None, map(_silence, runs, run_names(runs))))


def _silence(run: StoredRun, name: str) -> str | None:
    """Return why a run left much unanswered; None if it left little, or no model was asked."""
    metrics, program = run.metrics, run.record.cell.program
    if not (metrics.n and program.asks_model) or metrics.unanswered / metrics.n < SILENT:
        return None
    questions = set(run.record.questions)
    counts: Counter[Reason] = Counter()
    early: list[tuple[int, int]] = []
    examples: dict[Reason, str] = {}
    for prediction in run.folder.scan_predictions():
        is_blank = prediction.question in questions and prediction.status is Status.UNANSWERED
        if is_blank and (cause := prediction.reason) is not None and cause in CAUSES:
            counts[cause] += 1
            early += _cut_early(prediction)
            if reply := " ".join((prediction.reply or "").split()):
                examples.setdefault(cause, f', such as "{shorten(reply, 60)}"')
    if not counts:
        return None
    (first, most), *others = counts.most_common()
    other_causes = ", ".join(f"{CAUSES[cause]}: {count:,}" for cause, count in others)
    advice = ""
    if early and first in (Reason.TRUNCATED, Reason.TRUNCATED_THINKING):
        totals, longest = [sum(pair) for pair in early], max(tokens for _, tokens in early)
        advice = f"; prompt and reply filled the context of {max(totals):,} tokens: give the server a larger one"
        # A context ends all of them at the same place, a limit of the server's own wherever prompts end.
        if min(totals) < _SAME_PLACE * max(totals):
            advice = f"; the server cut them at {longest:,} tokens or before, though more were asked: raise its limit"
    elif first is Reason.EMPTY and first in examples:
        advice = "; the server put all of them into thinking: set model.thinking to off, or end its parsing of thoughts"
    elif first in _FREE and _could_be_guided(run):
        advice = "; program.answer_format=guided makes that impossible"
    elif first in (Reason.TRUNCATED, Reason.TRUNCATED_THINKING):
        advice = "; a larger program.max_tokens leaves them room"
    elif first is Reason.UNPARSED and (adapter := getattr(program, "adapter", None)) is not None:
        adapter_name = adapter.rpartition(":")[2]
        advice = f"; an answer must be in the format of the module's adapter, {adapter_name}, and be one of the options"
    cause_words = f"{most:,} of {metrics.n:,} {CAUSES[first]}{examples.get(first, '')}"
    return f"{name}: {cause_words}{other_causes and f' ({other_causes})'}{advice}."


def _cut_early(prediction: Prediction) -> Iterator[tuple[int, int]]:
    """Yield the tokens of a prompt and those of its reply, if that was cut far below its budget."""
    for call in prediction.calls:
        budget, reply_tokens = call.sampling.get("max_tokens"), call.completion_tokens
        if is_cut(call.finish_reason) and budget and reply_tokens is not None and call.prompt_tokens:
            if reply_tokens < _FAR_BELOW * budget:
                yield call.prompt_tokens, reply_tokens
            return


def _could_be_guided(run: StoredRun) -> bool:
    """Return whether the program has guided answers, and the engine that ran it is known to hold the model to them."""
    guided_by = (run.environment.get("engine") or {}).get("guided_by")
    ways = {"next_token", "prefill", "structured_outputs", "tool_choice"}
    if run.record.identity.get("pictures"):
        # Such questions are asked as a chat, where structured outputs alone guide.
        ways = {"structured_outputs"}
    program = run.record.cell.program
    is_choice = _CHOICE.search(getattr(program, "signature", "")) or getattr(program, "adapter", None) is None
    return getattr(program, "answer_format", None) == "free" and bool(is_choice) and guided_by in ways
