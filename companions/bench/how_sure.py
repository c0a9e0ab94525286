"""How often `compare --strengths` calls a pair of equal runs separable: simulated, the truth being known.

    python companions/bench/how_sure.py --times 200

Exams have 30 booklets of 34 questions, as five years of HEAD-QA do. Prints Markdown.
"""

import argparse

import numpy as np

from medexam_companions.analysis import compare_strengths

RUNS, EXAMS, SIZE = 4, 30, 34
CLUSTERS = [str(at // SIZE) for at in range(EXAMS * SIZE)]


def separates(rng: np.random.Generator, spread: float) -> bool:
    """Draw equal runs; `spread` is the standard deviation, in logits, of what one gains or loses in a single exam."""
    effects = spread * np.repeat(rng.normal(size=(RUNS, EXAMS)), SIZE, axis=1)
    logits = rng.normal(size=EXAMS * SIZE) + (effects if spread else 0.0)
    right = (rng.random((RUNS, EXAMS * SIZE)) < 1 / (1 + np.exp(-logits))).astype(float)
    return any(len(each["not_separable"]) < RUNS - 1 for each in compare_strengths(right, CLUSTERS))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=200, help="comparisons a row")
    times, rng = parser.parse_args().times, np.random.default_rng(2)
    print("| equal runs | SD of exams, logits | some pair separated, % |\n|--:|--:|--:|")
    for spread in (0.0, 0.3):
        share = float(np.mean([separates(rng, spread) for _ in range(times)]))
        print(f"| {RUNS} | {spread} | {100 * share:.1f} |")


if __name__ == "__main__":
    main()
