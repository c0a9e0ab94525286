"""Several submissions side by side: their ranks, and two findings of the shared task's paper over them.

The paper sets the F1 of lists against the score of multi-hop inverse, and the semantic score minus BLEU against the
model's size.
"""

import re
from collections.abc import Sequence
from typing import Any

from medexam.errors import SpecError
from medexam.tables import NONE, Table, coefficient, decimal, percent
from medexam_companions.cliniqlink.meaning import Profile
from medexam_companions.cliniqlink.scoring import FORMATS, OPEN
from medexam_companions.cliniqlink.submissions import Submission

_SIZE = re.compile(r"(?<![A-Za-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)([BbMm])(?![A-Za-z0-9])")
"""Billions or millions of parameters in a model's name, such as `70B`, `135M` and `8x7B`."""
_FEWEST = 3
"""Submissions that a correlation needs."""
Entry = dict[str, Any]
"""One submission on the board, JSON-ready."""


def rank_submissions(submissions: Sequence[Submission], profile: Profile) -> list[Entry]:
    """Rank by the overall score of a profile, the best first; equal scores share a rank, and no score has none.

    `formats` has the measures of each format, 0 to 1; `semantic` the mean of the four open ones; `size` the billions of
    parameters that the name of the model or the submission says. Raises `SpecError` if two have one name, or hold other
    questions, for their scores are then not comparable.
    """
    names = [submission.name for submission in submissions]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SpecError(f"two submissions are called {twice}: rename a folder")
    if len({frozenset(task.key for task in submission.items.questions) for submission in submissions}) > 1:
        counts = ", ".join(f"{each.name} {len(each.items.questions):,}" for each in submissions)
        raise SpecError(
            f"the submissions answer different questions ({counts}), so their scores are not comparable: --missing "
            "zero counts missing questions as unanswered; medexam compare uses the questions that all of them answer"
        )
    board = [_describe(submission, profile) for submission in submissions]
    values = [entry["measures"][profile] for entry in board]
    scores = sorted((value for value in values if value is not None), reverse=True)
    for entry, value in zip(board, values, strict=True):
        entry["rank"] = None if value is None else scores.index(value) + 1
    return sorted(board, key=lambda entry: (entry["rank"] is None, entry["rank"] or 0, entry["submission"]))


def _describe(submission: Submission, profile: Profile) -> Entry:
    metrics = submission.metrics
    measures = {name: measure.value for name, measure in metrics.measures.items()}
    formats = {
        group: {name: measure.value for name, measure in each.measures.items()}
        for group, each in metrics.by["group"].items()
    }
    scores: list[Any] = [formats.get(group, {}).get(profile) for group in OPEN]
    semantic = None if None in scores else sum(scores) / len(scores)
    bleu = measures.get("bleu")
    sizes = (read_size(name) for name in (submission.run.model or "", submission.name))
    return {
        "rank": None,
        "submission": submission.name,
        "run": submission.run.folder.name,
        "by": profile,
        "measures": measures,
        "formats": formats,
        "semantic": semantic,
        "semantic_minus_bleu": None if semantic is None or bleu is None else semantic - bleu,
        "size": next((size for size in sizes if size is not None), None),
        "n": metrics.n,
        "absent": len(submission.absent),
        "notes": list(submission.notes),
    }


def read_size(name: str) -> float | None:
    """Read billions of parameters in a model's name: 70 in `Llama-3-70B`, 56 in `8x7B`; None if it names none."""
    match = _SIZE.search(name.replace("_", "-"))
    if match is None:
        return None
    size = float(match[2]) * int(match[1] or 1)
    return size if match[3] in "Bb" else size / 1000


def ranking_tables(board: Sequence[Entry], profile: Profile) -> list[Table]:
    """Show ranks, formats, list F1 against multi-hop inverse, and semantic minus BLEU by model size."""
    names = [entry["submission"] for entry in board]
    measures = ("published", "paper", "published_forgiving", "paper_forgiving")
    overall = [[percent(entry["measures"][name]) for name in measures] for entry in board]
    ranks = [NONE if entry["rank"] is None else str(entry["rank"]) for entry in board]
    formats = [[entry["formats"].get(group, {}).get(profile) for group in FORMATS] for entry in board]
    pairs = [(scores[FORMATS.index("list")], scores[FORMATS.index("multi_hop_inverse")]) for scores in formats]
    by_size = sorted(board, key=lambda entry: (entry["size"] is None, entry["size"] or 0.0, entry["submission"]))
    gaps = [(entry["size"], entry["semantic_minus_bleu"]) for entry in by_size]
    return [
        Table(
            "Board",
            ("Submission", "Rank", "Published", "Paper", "Published, forgiving", "Paper, forgiving", "n"),
            tuple(
                (name, rank, *cells, f"{entry['n']:,}")
                for name, rank, cells, entry in zip(names, ranks, overall, board, strict=True)
            ),
            caption=(
                f"Percent. Ranked by {profile}. A format without a file counts 0 in the published profile and leaves "
                "no score in the paper's. Whether two differ by more than chance: medexam compare."
            ),
        ),
        Table(
            "Formats",
            ("Submission", *FORMATS),
            _rows(names, [map(percent, scores) for scores in formats]),
            caption=f"Percent, {profile}.",
        ),
        Table(
            "List F1 against multi-hop inverse",
            ("Submission", "List F1", "Multi-hop inverse"),
            _rows(names, [map(percent, pair) for pair in pairs]),
            caption=f"Percent, {profile}. {_correlate(pairs)}",
        ),
        Table(
            "Semantic score minus BLEU by model size",
            ("Submission", "Size", "Semantic", "BLEU", "Semantic minus BLEU"),
            tuple(
                (
                    entry["submission"],
                    NONE if size is None else f"{size:g}",
                    percent(entry["semantic"]),
                    percent(entry["measures"].get("bleu")),
                    decimal(None if gap is None else 100 * gap),
                )
                for entry, (size, gap) in zip(by_size, gaps, strict=True)
            ),
            caption=(
                "Size: billions of parameters, as the name says. Semantic: mean of the four open formats, percent, "
                f"{profile}. {_correlate(gaps)}"
            ),
        ),
    ]


def _rows(names: Sequence[str], cells: Sequence[Any]) -> tuple[tuple[str, ...], ...]:
    return tuple((name, *row) for name, row in zip(names, cells, strict=True))


def _correlate(pairs: Sequence[tuple[float | None, float | None]]) -> str:
    from scipy.stats import spearmanr

    points = [pair for pair in pairs if None not in pair]
    sides = list(zip(*points, strict=True))
    is_vague = len(points) < _FEWEST or any(len(set(side)) < 2 for side in sides)
    rho = NONE if is_vague else coefficient(float(spearmanr(*sides).statistic))
    return f"Spearman's rho over {len(points)} submissions: {rho}."
