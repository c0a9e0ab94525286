# ruff: noqa: T201
"""What `medexam sequential` saves and how often it errs: replayed on stored runs, and simulated.

    python companions/medexam_companions/analysis/tests/replay.py runs/study --replays 200
    python companions/medexam_companions/analysis/tests/replay.py --simulate 10000

With runs, each pair that was asked the same questions is asked again in random orders, and what the rule says is set
beside the paired test on all questions. `agrees`: the rule says what the full test says, or calls a difference none
that is in full below the stated one; questions that ran out leave the verdict to the full test. `same word` counts only
the first. With `--simulate`, pairs are drawn whose true difference is known. Prints Markdown.
"""

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from medexam.benchmarks import find_benchmark
from medexam.experiments import find_runs, load_items
from medexam.metrics import ALPHA, questions_needed
from medexam.predictions import Status
from medexam_companions.analysis import SequentialTest, find_looks

BETTER, WORSE, SMALL, RAN_OUT = range(4)
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Replayed:
    """How comparisons ended, an element a replay."""

    ending: Counts
    """`BETTER` to `RAN_OUT`."""
    asked: Counts


def replay(test: SequentialTest, gained: Counts, lost: Counts, looks: Counts) -> Replayed:
    """Follow the rule through counts at every look; a row a replay."""
    found = test.evidence(gained, lost, looks)
    crossed = [found[ending] >= needed for ending, needed in test.needed.items()]
    never = len(looks)
    first = np.stack([np.where(each.any(axis=1), each.argmax(axis=1), never) for each in crossed])
    when = first.min(axis=0)
    ending = np.where(when == never, RAN_OUT, first.argmin(axis=0))
    return Replayed(ending, looks[np.minimum(when, never - 1)])


def full_verdicts(gained: Counts, lost: Counts) -> Counts:
    """What McNemar's exact test says of all questions: `BETTER`, `WORSE`, or `SMALL` if it tells none apart."""
    p = 2 * binom.cdf(np.minimum(gained, lost), gained + lost, 0.5)
    return np.where(p >= ALPHA, SMALL, np.where(gained > lost, BETTER, WORSE))


def read_differences(paths: list[Path]) -> Iterator[NDArray[np.int8]]:
    """Of each pair of runs on the same questions, a number a question: 1, 0 or -1."""
    runs: list[dict[str, bool]] = []
    for folder in find_runs(paths):
        record = folder.read_record()
        benchmark = find_benchmark(record.cell.dataset)
        golds = load_items(folder).golds
        said = folder.read_predictions()
        scored = [key for key in record.questions if key in said and said[key].status is not Status.FAILED]
        runs.append({key: benchmark.is_right(said[key], golds[key]) for key in scored})
    for first, second in itertools.combinations(runs, 2):
        if first.keys() == second.keys():
            yield np.array([int(second[key]) - int(first[key]) for key in sorted(first)], dtype=np.int8)


def replay_runs(pairs: list[NDArray[np.int8]], difference: float, power: float, replays: int) -> str:
    """A row of the table of stored runs."""
    test, rng = SequentialTest(difference / 100, power), np.random.default_rng(0)
    agrees, same, false, share = [], [], [], []
    endings = np.zeros(4)
    for pair in pairs:
        looks = np.array(find_looks(len(pair)))
        orders = np.stack([rng.permutation(pair) for _ in range(replays)])
        gained, lost = ((orders == sign).cumsum(axis=1)[:, looks - 1] for sign in (1, -1))
        found = replay(test, gained, lost, looks)
        full = full_verdicts((pair == 1).sum(), (pair == -1).sum())
        word = (found.ending == RAN_OUT) | (found.ending == full)
        same.append(word.mean())
        agrees.append((word | ((found.ending == SMALL) & (abs(pair.mean()) < test.difference))).mean())
        false.append((np.isin(found.ending, (BETTER, WORSE)) & ~word).mean())
        share.append(found.asked / len(pair))
        endings += np.bincount(found.ending, minlength=4)
    ends = endings / endings.sum()
    numbers = [np.mean(agrees), np.mean(same), np.mean(false), np.median(share), np.mean(share)]
    decided = [ends[BETTER] + ends[WORSE], ends[SMALL], ends[RAN_OUT]]
    return _row(f"{difference:g}", *(f"{100 * number:.1f}" for number in [*numbers, *decided]))


def simulate(difference: float, flipped: float, true: float, power: float, replays: int) -> str:
    """A row of the table of simulated pairs; as many questions as the full test needs for the stated difference."""
    test, rng = SequentialTest(difference / 100, power), np.random.default_rng(0)
    n = questions_needed(difference / 100, flipped) or 0
    looks = np.array(find_looks(n))
    chances = [(flipped + true / 100) / 2, (flipped - true / 100) / 2, 1 - flipped]
    blocks = np.stack([rng.multinomial(size, chances, size=replays) for size in np.diff(looks, prepend=0)], axis=1)
    counts = blocks.cumsum(axis=1)
    found = replay(test, counts[:, :, 0], counts[:, :, 1], looks)
    full = full_verdicts(counts[:, -1, 0], counts[:, -1, 1])
    ended = np.where(found.ending == RAN_OUT, full, found.ending)
    early = [(found.ending == what).mean() for what in (BETTER, WORSE, SMALL)]
    rates = [*early, (ended == BETTER).mean(), (full == BETTER).mean(), np.median(found.asked) / n]
    return _row(f"{difference:g}", f"{flipped:g}", f"{true:g}", f"{n:,}", *(f"{100 * rate:.1f}" for rate in rates))


def _row(*cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _head(*cells: str) -> str:
    return f"{_row(*cells)}\n|{'---|' * len(cells)}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, help="run folders, or folders of runs")
    parser.add_argument("--difference", type=float, nargs="+", default=[3, 4, 5, 6, 8, 10], metavar="POINTS")
    parser.add_argument("--power", type=float, default=0.8)
    parser.add_argument("--replays", type=int, default=200, help="random orders of each pair")
    parser.add_argument("--simulate", type=int, metavar="N", help="draw N comparisons of each kind")
    asked = parser.parse_args()
    if asked.runs:
        pairs = list(read_differences(asked.runs))
        print(f"{len(pairs)} pairs, {asked.replays} orders each, percent\n")
        print(_head("difference", "agrees", "same word", "false", "asked, median", "mean", "told apart", "none", "out"))
        for difference in asked.difference:
            print(replay_runs(pairs, difference, asked.power, asked.replays), flush=True)
    if asked.simulate:
        print(f"\n{asked.simulate:,} comparisons a row, percent\n")
        columns = ("difference", "flipped", "true", "questions", "better", "worse", "none", "better in the end")
        print(_head(*columns, "full test", "asked, median"))
        for difference, flipped in ((3, 0.3), (5, 0.3), (8, 0.3), (5, 0.15), (5, 0.5)):
            for true in (0, difference / 2, difference, 2 * difference):
                print(simulate(difference, flipped, true, asked.power, asked.simulate), flush=True)


if __name__ == "__main__":
    main()
