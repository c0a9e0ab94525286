"""A run's predictions on ClinIQLink as `Metrics`, by both profiles side by side."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, get_args

from medexam.measures import (
    Measure,
    ScoredRun,
    group_tasks,
    mean_measure,
    scored_items,
    split_by_support,
    task_metrics,
    task_scores,
)
from medexam.predictions import Prediction
from medexam.questions import Task, TaskGold
from medexam_companions.cliniqlink import closed
from medexam_companions.cliniqlink.meaning import (
    NgramScorer,
    OpenAnswer,
    Profile,
    compare_texts,
    load_ngram_scorer,
    read_open,
)
from medexam_companions.cliniqlink.reading import FILES

if TYPE_CHECKING:
    from medexam_companions.cliniqlink.benchmark import ScorerEncoder

FORMATS = tuple(FILES)
OPEN = FORMATS[3:]
"""Formats that are scored by meaning; the others by equal texts."""
PROFILES: tuple[Profile, ...] = get_args(Profile)
_LAYERS = ("pieces", "sentence", "paragraph")
_CLOSED_REASONING = re.compile(r"<think>.*?</think>", re.IGNORECASE | re.DOTALL)
_ASSISTANT = re.compile(r"\bassistant\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """A task, what is expected, and the text that is scored."""

    task: Task
    gold: TaskGold
    text: str
    """Without closed reasoning, and without the word `assistant`, which the task's `submit.py` deletes."""

    @classmethod
    def of(cls, task: Task, gold: TaskGold, reply: str | None) -> "Answer":
        """Make it of a reply; None is an empty one."""
        return cls(task, gold, _CLOSED_REASONING.sub("", _ASSISTANT.sub("", reply or "").strip()).strip())

    @property
    def expected(self) -> str:
        """The gold as one text."""
        return " ".join(self.gold.answers).strip()

    def find_flaws(self) -> list[str]:
        """List what keeps it from being what its prompt asked for; a list item without options has no flaw."""
        task, text = self.task, self.text
        flaws = {"empty": not text, "unclosed reasoning": "<think>" in text.lower()}
        match task.group:
            case "true_false":
                word, trailing = closed.read_verdict(text)
                flaws |= {"no verdict": word is None, "trailing text": trailing}
            case "multiple_choice":
                is_option = closed.normalise(text) in map(closed.normalise, task.options)
                is_right = closed.match_choice(task.options, self.expected, text) == "full"
                flaws["not an option"] = not is_right and not is_option
            case "list" if not task.options:
                return []
            case "list":
                flaws["unmatched piece"] = closed.read_list(task.options, self.gold.answers, text).malformed
            case _:
                answer = read_open(task, self.gold, text)
                flaws["echo"] = answer.is_echo
                if task.group == "multi_hop_inverse":
                    flaws |= {"no step": answer.step is None, "no explanation": not answer.has_marker}
        return [flaw for flaw, is_there in flaws.items() if is_there]


@dataclass(frozen=True)
class _Part:
    """What the answers of one format earn."""

    items: Mapping[str, Mapping[str, float]]
    """Measure -> task -> score."""
    values: Mapping[str, float | None]
    """Measure -> value of the format; a profile's name for what enters its overall mean."""
    counts: Mapping[str, int] = field(default_factory=dict)


def score_cliniqlink(
    tasks: Sequence[Task],
    golds: Mapping[str, TaskGold],
    predictions: Mapping[str, Prediction],
    *,
    encoder: "ScorerEncoder",
    references: Sequence[str],
    seed: int = 0,
) -> ScoredRun:
    """Score the predictions on exactly these tasks, by key.

    `published` and `paper` are the two profiles: over all tasks the unweighted mean of the seven formats. A format
    without scored items counts 0 in the published one and makes the paper's None. `forgiving` reads closed answers
    kindly; what it has more than the others is lost to the form alone. An unanswered task is an empty answer.
    `references` are the right answers of the whole benchmark. `seed` draws the pairs of the paragraph layer's baseline.
    The means over the items of a format have intervals; the published list score, which is none, has not. Of items that
    share a paragraph, the last alone counts in published list figures, step rate and n-gram means.
    """
    scored = scored_items(tasks, predictions)
    if not scored:
        return ScoredRun(task_metrics(tasks, predictions, {}, {}), {})
    answers: dict[str, list[Answer]] = {kind: [] for kind in FORMATS}
    for task in scored:
        answers[task.group].append(Answer.of(task, golds[task.key], predictions[task.key].text))
    ngrams, notes = load_ngram_scorer()
    texts = {each.task.key: read_open(each.task, each.gold, each.text) for kind in OPEN for each in answers[kind]}
    pairs = {key: (text.gold, text.predicted) for key, text in texts.items() if not text.is_echo}
    similarities, baseline = compare_texts(list(pairs.values()), references, encoder, seed=seed) if texts else ([], {})
    layers = dict(zip(pairs, similarities, strict=True))
    parts = {
        "true_false": _score_verdicts(answers["true_false"]),
        "multiple_choice": _score_choices(answers["multiple_choice"]),
        "list": _score_lists(answers["list"]),
        **{kind: _score_open(answers[kind], texts, layers, ngrams) for kind in OPEN},
    }
    items: dict[str, dict[str, float]] = {}
    for part in parts.values():
        for measure, scores in part.items.items():
            items.setdefault(measure, {}).update(scores)
    overall = {f"{profile}{way}": _average(parts, profile, way) for way in ("", "_forgiving") for profile in PROFILES}
    for name in ("bleu", "meteor", "rouge"):
        if values := [value for part in parts.values() if (value := part.values.get(name)) is not None]:
            overall[name] = fmean(values)
    kinds = [kind for kind in FORMATS if any(task.group == kind for task in tasks)]
    flaws = {
        kind: Counter(f"malformed: {flaw}" for each in answers[kind] for flaw in each.find_flaws()) for kind in kinds
    }
    counts = {kind: all_counts for kind in kinds if (all_counts := {**flaws[kind], **parts[kind].counts})}
    by_item = items["paper"]
    groups = group_tasks(tasks)
    by = {
        "group": {kind: task_scores(groups[kind], predictions, _measure(kind, parts[kind])) for kind in kinds},
        "subset": {
            name: task_scores(
                part, predictions, {"paper": mean_measure({t.key: by_item[t.key] for t in part if t.key in by_item})}
            )
            for name, part in split_by_support(tasks, predictions).items()
        },
    }
    measures = {name: Measure(value=value, n=len(items["paper"])) for name, value in overall.items()}
    tallies = {"Answers": counts} if counts else {}
    metrics = task_metrics(tasks, predictions, measures, by, tallies=tallies, settings=baseline, notes=notes)
    return ScoredRun(metrics, {measure: items[measure] for measure in ("paper", *items) if items[measure]})


def _average(parts: Mapping[str, _Part], profile: Profile, way: str) -> float | None:
    values = [part.values.get(f"{profile}{way}", part.values[profile]) for part in parts.values()]
    numbers = [value for value in values if value is not None]
    return None if profile == "paper" and len(numbers) < len(values) else sum(numbers) / len(values)


def _measure(kind: str, part: _Part) -> dict[str, Measure]:
    n = len(part.items["paper"])
    own = {profile: mean_measure(part.items[profile]) for profile in PROFILES}
    if kind == "list":
        own["published"] = Measure(value=part.values["published"], n=n)
    return own | {name: Measure(value=value, n=n) for name, value in part.values.items() if name not in own}


def _score_verdicts(answers: Sequence[Answer]) -> _Part:
    scores = {each.task.key: float(closed.read_verdict(each.text)[0] == each.expected.lower()) for each in answers}
    kind = [closed.read_verdict_kindly(each.text) == each.expected.lower() for each in answers]
    return _close(scores, kind)


def _score_choices(answers: Sequence[Answer]) -> _Part:
    matches = {each.task.key: closed.match_choice(each.task.options, each.expected, each.text) for each in answers}
    kind = [closed.chooses_right_kindly(each.task.options, each.expected, each.text) for each in answers]
    counts = Counter(f"match: {match}" for match in matches.values())
    return _close({key: float(match == "full") for key, match in matches.items()}, kind, counts)


def _close(scores: Mapping[str, float], kind: Sequence[bool], counts: Mapping[str, int] | None = None) -> _Part:
    """Bring scores and what a kind reader would give together; both profiles read alike."""
    values = {"": _mean(scores.values()), "_forgiving": _mean(kind)}
    return _Part(
        dict.fromkeys(PROFILES, scores),
        {f"{profile}{way}": value for way, value in values.items() for profile in PROFILES},
        counts or {},
    )


def _score_lists(answers: Sequence[Answer]) -> _Part:
    listed = [each for each in answers if each.task.options]
    strict = {e.task.key: closed.read_list(e.task.options, e.gold.answers, e.text) for e in listed}
    kind = {e.task.key: closed.read_list_kindly(e.task.options, e.gold.answers, e.text) for e in listed}
    scores = {key: answer.f1 for key, answer in strict.items()}
    keys_that_count = _last_of_paragraph(listed)
    last = [strict[key] for key in keys_that_count]
    values: dict[str, float | None] = {
        "published": closed.label_macro_f1(last) if last else None,
        "paper": _mean(scores.values()),
        "published_forgiving": closed.label_macro_f1(kind[key] for key in keys_that_count) if last else None,
        "paper_forgiving": _mean([answer.f1 for answer in kind.values()]),
    }
    if last:
        values |= {
            "micro_f1": closed.micro_f1(last),
            "mean_average_precision": fmean(answer.average_precision for answer in last),
            "mean_reciprocal_rank": fmean(answer.reciprocal_rank for answer in last),
            "precision_at_5": fmean(answer.precision_at_5 for answer in last),
        }
    without_options = len(answers) - len(listed)
    return _Part(dict.fromkeys(PROFILES, scores), values, {"dropped": without_options} if without_options else {})


def _score_open(
    answers: Sequence[Answer],
    texts: Mapping[str, OpenAnswer],
    layers: Mapping[str, Mapping[str, float]],
    ngrams: NgramScorer | None,
) -> _Part:
    """Score the answers of an open format; `texts` and `layers` are by task, and an echo has no layers."""
    keys = [each.task.key for each in answers]
    items: dict[str, dict[str, float]] = {
        profile: {key: layers[key][profile] * texts[key].factor(profile) if key in layers else 0.0 for key in keys}
        for profile in PROFILES
    }
    values: dict[str, float | None] = {profile: _mean(items[profile].values()) for profile in PROFILES}
    items |= {layer: {key: layers[key][layer] for key in keys if key in layers} for layer in _LAYERS}
    keys_that_count = _last_of_paragraph(answers)
    if answers and answers[0].task.group == "multi_hop_inverse":
        steps = [(texts[key].step, texts[key].gold_step) for key in keys_that_count]
        values["step_rate"] = _mean([step is not None and step == gold_step for step, gold_step in steps])
    if ngrams is not None and answers:
        nothing = dict.fromkeys(ngrams("a", "b"), 0.0)
        pairs = {key: (texts[key].gold, texts[key].predicted) for key in keys}
        scores = {key: nothing if texts[key].is_echo else ngrams(*pairs[key]) for key in keys}
        items |= {name: {key: scores[key][name] for key in keys} for name in nothing}
        values |= {name: fmean(items[name][key] for key in keys_that_count) for name in nothing}
    return _Part(items, values)


def _last_of_paragraph(answers: Sequence[Answer]) -> list[str]:
    """List the keys, the last alone of those that share a paragraph."""
    last: dict[tuple[str, bool], str] = {}
    for each in answers:
        paragraph = each.gold.paragraph
        last[(each.task.key, False) if paragraph is None else (paragraph, True)] = each.task.key
    return list(last.values())


def _mean(values: Collection[float]) -> float | None:
    return fmean(values) if values else None
