"""`medexam compare --equivalent-within`, by one-sided tests beside the paired interval; and the margin of its gate."""

from medexam.errors import SpecError
from medexam.experiments.compare.section import ComparisonScope, ComparisonSection
from medexam.measures.comparing import Pair
from medexam.measures.margins import Told, judge_margin, score_test
from medexam.measures.paired import adjust_holm
from medexam.measures.shown import signed
from medexam.tables import decimal, equals

_PHRASES: dict[Told, str] = {
    "equivalent": "is equivalent to",
    "not equivalent": "is not equivalent to",
    "not shown": "is not shown to be equivalent to",
}


def find_equivalence(points: float, compared: ComparisonScope) -> ComparisonSection:
    """Test whether runs differ from the baseline by less than `points` percentage points, however replies are read."""
    if not compared.benchmark.right_or_wrong:
        raise SpecError("--equivalent-within: the runs answer in words; it tests right and wrong answers: leave it out")
    margin, pairs, (baseline, *names) = points / 100, compared.statistics.pairs, compared.names
    views = [(pair.first, *pair.by_view(compared.statistics.measure).values()) for pair in pairs]
    flips = [[view.flips for view in each if view.flips is not None] for each in views]
    tests = [[score_test(f.right_to_wrong, f.wrong_to_right, f.n, margin) for f in each] for each in flips]
    p_values = adjust_holm([max(test.p for test in each) for each in tests])
    verdicts: list[Told] = []
    for each, p in zip(views, p_values, strict=True):
        of_views = {judge_margin(view.difference, margin, p) for view in each}
        verdicts.append(of_views.pop() if len(of_views) == 1 else "not shown")
    results = list(zip(names, pairs, [first for first, *_ in tests], p_values, verdicts, strict=True))
    sentences = [
        f"{name} {_PHRASES[verdict]} {baseline} within {_points(margin)}: {signed(pair.first.difference)}, p "
        f"{equals(p)} of two one-sided tests (Tango's score test){' after Holm' if len(names) > 1 else ''}."
        for name, pair, _, p, verdict in results
    ]
    documents = {
        key: {**test._asdict(), "p": test.p, "p_adjusted": p, "verdict": verdict}
        for key, (_, _, test, p, verdict) in zip(compared.run_keys[1:], results, strict=True)
    }
    return ComparisonSection("equivalence", sentences, {"margin": margin, "pairs": documents})


def parse_gate(text: str) -> float:
    """Parse `worse:1.0`, percentage points that a run may lose, to a fraction; raises `SpecError` for all else."""
    rule, _, margin = text.partition(":")
    try:
        points = float(margin)
    except ValueError:
        points = 0.0
    if rule != "worse" or not 0 < points < 100:
        raise SpecError(f"--fail-if {text}: give worse:POINTS, such as worse:1.0, in percentage points over 0")
    return points / 100


def judge_gate(pair: Pair, margin: float, run: str, baseline: str) -> tuple[bool, str]:
    """Judge whether a run loses less than the margin as it is scored, and write so: the gate of an integration.

    It passes if its paired 95 % interval lies above minus the margin: a test of non-inferiority at 2.5 % (Piaggio et
    al. 2012, the extension of CONSORT). With too few questions for that it fails: nothing shows that it is good.
    """
    difference = pair.first.difference
    low, high = difference.bounds or (-1.0, 1.0)
    phrase = f"may be worse than {baseline} by {_points(margin)} or more"
    if low > -margin:
        phrase = f"is not worse than {baseline} by {_points(margin)}"
    elif high < -margin:
        phrase = f"is worse than {baseline} by more than {_points(margin)}"
    return low > -margin, f"{run} {phrase}: {signed(difference)}."


def _points(margin: float) -> str:
    return f"{decimal(100 * margin)} percentage points"
