"""How often equivalence, strengths and item response err: simulated, the truth being known.

    python companions/bench/how_sure.py --times 2000

Exams have 30 booklets of 34 questions, as five years of HEAD-QA do. Prints Markdown.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from medexam.measures import Difference
from medexam.measures.intervals import resample
from medexam.measures.margins import judge_margin, score_test
from medexam_companions.analysis import compare_strengths, fit_items, judge_items

EXAMS, SIZE = 30, 34
N = EXAMS * SIZE
CLUSTERS = [str(at // SIZE) for at in range(N)]
Floats = NDArray[np.float64]


def table(title: str, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table."""
    print(f"\n{title}\n\n| {' | '.join(headers)} |\n|{'--:|' * len(headers)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")


def percent(outcomes: Sequence[bool]) -> str:
    """A share of them, percent."""
    return f"{100 * float(np.mean(outcomes)):.1f}"


def judge_flips(lost: NDArray[np.int64], gained: NDArray[np.int64], margin: float) -> tuple[bool, bool]:
    """By flips of each exam: whether `compare` says equivalent, and whether a gate passes."""
    ((interval, way),) = resample(((gained - lost) / SIZE)[:, None], np.arange(EXAMS))
    difference = Difference(value=float((gained - lost).sum() / N), interval=interval, resampled=way)
    test = score_test(int(lost.sum()), int(gained.sum()), N, margin)
    assert interval is not None
    return judge_margin(difference, margin, test.p) == "equivalent", interval[0] > -margin


def margins(times: int, rng: np.random.Generator) -> None:
    """Two runs whose true difference lies at the margin, or is none; exams of one difference, or of several."""
    rows = []
    for margin, true, spread in (
        (0.03, -0.03, 0.0),
        (0.03, -0.03, 0.04),
        (0.05, -0.05, 0.0),
        (0.05, -0.05, 0.04),
        (0.03, 0.0, 0.0),
        (0.05, 0.0, 0.0),
        (0.05, 0.0, 0.04),
    ):
        verdicts = []
        for _ in range(times):
            by_exam = np.clip(true + spread * rng.normal(size=EXAMS), -0.19, 0.19)
            shares = np.column_stack([(0.2 - by_exam) / 2, (0.2 + by_exam) / 2, np.full(EXAMS, 0.8)])
            lost, gained, _ = rng.multinomial(SIZE, shares).T
            verdicts.append(judge_flips(lost, gained, margin))
        settings = (f"{100 * value:g}" for value in (margin, true, spread))
        rows.append((*settings, *map(percent, zip(*verdicts, strict=True))))
    headers = ("margin", "true difference", "its SD over exams", "equivalent, %", "gate passes, %")
    table(f"Margins, {times:,} comparisons a row, 20 % of the questions flip.", headers, rows)


def draw(abilities: Floats, slopes: Floats, rng: np.random.Generator, exams: float = 0.0) -> Floats:
    """Right and wrong answers; `exams` is the standard deviation of what a run gains or loses in a single exam."""
    effects = exams * np.repeat(rng.normal(size=(len(abilities), EXAMS)), SIZE, axis=1)[:, : len(slopes)]
    logits = np.outer(abilities, slopes) + rng.normal(size=len(slopes)) + (effects if exams else 0.0)
    return (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)


def strengths(times: int, rng: np.random.Generator) -> None:
    """Equal runs, of which no pair should be separable."""
    rows = []
    for runs, exams in ((4, 0.0), (4, 0.3)):
        separated = [
            any(
                len(each["not_separable"]) < runs - 1
                for each in compare_strengths(draw(np.zeros(runs), np.ones(N), rng, exams), CLUSTERS)
            )
            for _ in range(times)
        ]
        rows.append((runs, exams, percent(separated)))
    headers = ("equal runs", "SD of exams, logits", "some pair separated, %")
    table(f"Strengths, {times:,} comparisons a row.", headers, rows)


def item_response(times: int, rng: np.random.Generator) -> None:
    """Independent runs on 300 questions: a tenth does not discriminate, another tenth has a wrong key."""
    rows = []
    for runs in (15, 50, 100, 300):
        figures: list[tuple[float, ...]] = []
        for _ in range(times):
            slopes = rng.uniform(0.7, 2.0, 300)
            slopes[:30], slopes[30:60] = 0.0, -slopes[30:60]
            right = draw(rng.normal(size=runs), slopes, rng)
            fit = fit_items(right)
            verdicts = judge_items(fit, right, right.astype(int).tolist(), [0.25] * 300)
            useless = np.array([each["useless"] for each in verdicts])
            shares = (useless[:30].mean(), useless[30:60].mean(), useless[60:].mean())
            correlation = float(np.corrcoef(fit.discriminations, slopes)[0, 1])
            figures.append(
                (correlation, float(np.median(fit.discrimination_sds)), *(100 * float(each) for each in shares))
            )
        mean = np.mean(figures, axis=0)
        rows.append((runs, *(f"{each:.2f}" for each in mean[:2]), *(f"{each:.1f}" for each in mean[2:])))
    headers = (
        *("runs", "correlation of discriminations", "median standard error"),
        *("useless named, %", "wrong keys named useless, %", "good ones named useless, %"),
    )
    table(f"Item response, {times:,} simulations a row, 300 questions.", headers, rows)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=2000, help="comparisons a row; of strengths fewer")
    times = parser.parse_args().times
    rng = np.random.default_rng(1)
    margins(times, rng)
    strengths(max(times // 10, 1), np.random.default_rng(2))
    item_response(max(times // 200, 1), rng)


if __name__ == "__main__":
    main()
