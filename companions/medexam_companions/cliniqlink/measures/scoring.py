"""From items and replies to `ClinIQLinkScores`, by a named profile: pure, so that a stored run can be scored again."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from medexam.errors import DatasetError
from medexam_companions.cliniqlink.measures.answers import ItemAnswer, OpenAnswer, match_replies, open_answer
from medexam_companions.cliniqlink.measures.closed import (
    Match,
    forgiven_choice,
    forgiven_list,
    forgiven_verdict,
    match_gold,
    read_verdict,
    verdict_is_right,
)
from medexam_companions.cliniqlink.measures.flaws import find_flaws
from medexam_companions.cliniqlink.measures.items import (
    OPEN,
    PUBLISHED,
    Format,
    Malformed,
    ScoringItem,
    ScoringProfile,
    reference_texts,
)
from medexam_companions.cliniqlink.measures.lists import ListFigures, Picks, gold_labels, list_figures, read_list_answer
from medexam_companions.cliniqlink.measures.ngrams import NgramScorer, NgramScores, mean_scores
from medexam_companions.cliniqlink.measures.ranking import RankedList, RankingFigures, ranking_figures
from medexam_companions.cliniqlink.measures.semantic import Baseline, Similarity, TextEncoder, compare_texts
from medexam_companions.cliniqlink.measures.texts import Reply

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FormatScores:
    """The scores of one format; fractions of 1."""

    format: Format
    n: int
    """Items scored."""
    score: float | None
    """What enters the overall mean: accuracy, macro F1 of lists, or the mean semantic score. None if `n` is 0."""
    items: Mapping[str, float]
    """Item key -> score: 0 or 1, the item's F1, or the semantic score with its penalty. For lists the mean of these is
    not `score` in the published profile."""
    malformed: Mapping[Malformed, int]
    """Outputs of each kind, and only kinds that occur; an output may be of several."""
    without_options: int = 0
    """List items without options, which the rules leave out of numerator and denominator."""
    forgiving: float | None = None
    """Closed formats: `score` as a kind reader would have it. `forgiving - score` is lost to the format alone."""
    matches: Mapping[Match, int] = field(default_factory=dict)
    """Multiple choice: answers by how they meet the gold."""
    lists: ListFigures | None = None
    """Lists, as the scorer reads them."""
    ranking: RankingFigures | None = None
    """Lists as rankings, in the order named."""
    step_rate: float | None = None
    """Multi-hop inverse: share of the items whose wrong step is found; an unreadable step is not found."""
    layers: Mapping[str, Similarity] = field(default_factory=dict)
    """Open formats: item key -> layers and score before any penalty; an echo of the question has none."""
    ngrams: NgramScores | None = None
    """Open formats: means over the items; None if they were not asked for."""
    item_ngrams: Mapping[str, NgramScores] = field(default_factory=dict)
    """Open formats: item key -> its own; empty if they were not asked for."""


@dataclass(frozen=True, slots=True)
class ClinIQLinkScores:
    """The scores of one run."""

    profile: str
    formats: Mapping[Format, FormatScores]
    """All seven, in the order of `Format`."""
    overall: float | None
    """Unweighted mean of the seven scores. A format without scored items counts 0 in the published profile, and makes
    this None in the paper's."""
    forgiving_overall: float | None
    """The same with the kind reading of the closed formats."""
    baseline: Baseline | None
    """Of the paragraph layer; None if no open answer was scored."""
    ngrams: NgramScores | None = None
    """Unweighted mean over the open formats that were scored; None if they were not asked for."""
    ngrams_missing: tuple[str, ...] = ()
    """What NLTK's data lack, and which measures are None for it."""


def score_cliniqlink(
    items: Sequence[ScoringItem],
    replies: Mapping[str, Reply],
    encoder: TextEncoder | None = None,
    *,
    profile: ScoringProfile = PUBLISHED,
    references: Sequence[str] | None = None,
    seed: int = 0,
    ngrams: bool = False,
) -> ClinIQLinkScores:
    """Score one reply for each item, by item key.

    `encoder` is needed for open formats only. `references` are what word pieces and the baseline are counted over: the
    answers of all seven formats. None takes those of `items`, so give them where only a part of the benchmark is
    scored. `seed` draws the baseline's pairs. With `ngrams` BLEU, METEOR and ROUGE are reported too.

    Raises `DatasetError` if there is no item, where items and replies do not belong together, and where open
    answers have no encoder; `MedExamError` where `ngrams` asks for a package that is missing.
    """
    if not items:
        raise DatasetError("there is no item to score; give at least one")
    groups: dict[Format, list[ItemAnswer]] = {kind: [] for kind in Format}
    for answer in match_replies(items, replies):
        groups[answer.item.format].append(answer)
    formats = {
        Format.TRUE_FALSE: _true_false(groups[Format.TRUE_FALSE]),
        Format.MULTIPLE_CHOICE: _multiple_choice(groups[Format.MULTIPLE_CHOICE]),
        Format.LIST: _lists(groups[Format.LIST], profile),
    }
    answers = [open_answer(answer, profile) for kind in OPEN for answer in groups[kind]]
    similarities, baseline = _compare(answers, items, references, encoder, profile, seed)
    scorer = NgramScorer() if ngrams else None
    for kind in OPEN:
        pairs = [(a, s) for a, s in zip(answers, similarities, strict=True) if a.item.format is kind]
        formats[kind] = _open(kind, pairs, profile, scorer)
    ngram_scores = [scores.ngrams for scores in formats.values() if scores.ngrams is not None]
    return ClinIQLinkScores(
        profile=profile.name,
        formats=formats,
        overall=_overall([scores.score for scores in formats.values()], profile),
        forgiving_overall=_overall(
            [scores.score if scores.forgiving is None else scores.forgiving for scores in formats.values()], profile
        ),
        baseline=baseline,
        ngrams=mean_scores(ngram_scores),
        ngrams_missing=scorer.missing if scorer else (),
    )


def _true_false(answers: Sequence[ItemAnswer]) -> FormatScores:
    scores = {
        answer.item.key: float(verdict_is_right(answer.item, read_verdict(answer.text).word)) for answer in answers
    }
    flaws = _count_flaws(answers)
    forgiven = _mean([forgiven_verdict(answer.item, answer.text) for answer in answers])
    return _scores(Format.TRUE_FALSE, scores, flaws, forgiving=forgiven)


def _multiple_choice(answers: Sequence[ItemAnswer]) -> FormatScores:
    scores, matches = {}, Counter[Match]()
    for answer in answers:
        match = match_gold(answer.item, answer.text)
        matches[match] += 1
        scores[answer.item.key] = float(match is Match.FULL)
    flaws = _count_flaws(answers)
    forgiven = _mean([forgiven_choice(answer.item, answer.text) for answer in answers])
    return _scores(Format.MULTIPLE_CHOICE, scores, flaws, forgiving=forgiven, matches=dict(matches))


def _lists(answers: Sequence[ItemAnswer], profile: ScoringProfile) -> FormatScores:
    strict: list[tuple[ScoringItem, Picks]] = []
    forgiving: list[tuple[ScoringItem, Picks]] = []
    ranked: list[tuple[ScoringItem, RankedList]] = []
    for answer in answers:
        if not answer.item.options:
            continue
        reading = read_list_answer(answer.item, answer.text)
        gold = gold_labels(answer.item)
        strict.append((answer.item, Picks(gold, reading.picks)))
        ranked.append((answer.item, RankedList(gold, reading.ranked)))
        forgiving.append((answer.item, forgiven_list(answer.item, answer.text)))
    flaws = _count_flaws([answer for answer in answers if answer.item.options])
    figures, forgiven = list_figures(_counted(strict, profile)), list_figures(_counted(forgiving, profile))
    return _scores(
        Format.LIST,
        {item.key: picks.f1 for item, picks in strict},
        flaws,
        without_options=len(answers) - len(strict),
        score=_macro(figures, profile),
        forgiving=_macro(forgiven, profile),
        lists=figures,
        ranking=ranking_figures(_counted(ranked, profile)),
    )


def _count_flaws(answers: Sequence[ItemAnswer]) -> Counter[Malformed]:
    return Counter(flaw for answer in answers for flaw in find_flaws(answer))


def _compare(
    answers: Sequence[OpenAnswer],
    items: Sequence[ScoringItem],
    references: Sequence[str] | None,
    encoder: TextEncoder | None,
    profile: ScoringProfile,
    seed: int,
) -> tuple[list[Similarity | None], Baseline | None]:
    """Compare each answer with its gold: one similarity for each answer, None for an echo."""
    if not answers:
        return [], None
    if encoder is None:
        raise DatasetError(
            f"{answers[0].item.key!r} is an open question, and there is no encoder to compare answers with; give one, "
            "or score the closed formats alone"
        )
    pairs = [(answer.gold, answer.predicted) for answer in answers if not answer.is_echo]
    texts = reference_texts(items) if references is None else references
    similarities, baseline = compare_texts(pairs, texts, encoder, raw_paragraph=profile.raw_paragraph, seed=seed)
    queue = iter(similarities)
    return [None if answer.is_echo else next(queue) for answer in answers], baseline


def _open(
    kind: Format,
    answers: Sequence[tuple[OpenAnswer, Similarity | None]],
    profile: ScoringProfile,
    scorer: NgramScorer | None,
) -> FormatScores:
    scores = {a.item.key: s.score * a.factor if s else 0.0 for a, s in answers}
    flaws = Counter(flaw for answer, _ in answers for flaw in answer.flaws)
    selection = _counted([(answer.item, answer) for answer, _ in answers], profile)
    ngrams: dict[str, NgramScores] = {}
    if scorer is not None:
        pairs = ((a.item.key, scorer.zero() if a.is_echo else scorer.score(a.gold, a.predicted)) for a, _ in answers)
        ngrams = dict(pairs)
    return _scores(
        kind,
        scores,
        flaws,
        step_rate=_mean([a.names_step for a in selection]) if kind is Format.MULTI_HOP_INVERSE else None,
        layers={answer.item.key: similarity for answer, similarity in answers if similarity is not None},
        ngrams=mean_scores(ngrams[answer.item.key] for answer in selection) if ngrams else None,
        item_ngrams=ngrams,
    )


def _scores(kind: Format, items: Mapping[str, float], flaws: Counter[Malformed], **fields: Any) -> FormatScores:
    """Build the scores of one format; `fields` adds fields, or another `score` than the mean over the items."""
    all_fields = {"score": _mean(list(items.values())), "malformed": dict(flaws), **fields}
    return FormatScores(kind, len(items), items=items, **all_fields)


def _counted(pairs: Iterable[tuple[ScoringItem, T]], profile: ScoringProfile) -> list[T]:
    """Select all, or the last of each paragraph."""
    if not profile.last_of_paragraph:
        return [entry for _, entry in pairs]
    last_by_key: dict[tuple[str, bool], T] = {}
    for item, entry in pairs:
        last_by_key[(item.key, False) if item.paragraph is None else (item.paragraph, True)] = entry
    return list(last_by_key.values())


def _macro(figures: ListFigures | None, profile: ScoringProfile) -> float | None:
    if figures is None:
        return None
    return figures.item_macro_f1 if profile.item_macro else figures.label_macro_f1


def _overall(scores: Sequence[float | None], profile: ScoringProfile) -> float | None:
    numbers = [score for score in scores if score is not None]
    if len(numbers) < len(scores) and not profile.missing_counts_zero:
        return None
    return sum(numbers) / len(scores)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
