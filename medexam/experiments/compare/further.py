"""Further parts of a comparison: what runs answer together, equivalence within a margin, and those of packages."""

from dataclasses import fields, replace
from functools import partial
from typing import Any

from medexam.errors import SpecError
from medexam.experiments.compare.protocols import find_protocols
from medexam.experiments.compare.result import ComparisonScope, ComparisonSection, Finder
from medexam.measures.comparing import Pair, RunAnswers, pair_runs
from medexam.measures.margins import Told, judge_margin, score_test
from medexam.measures.paired import adjust_holm
from medexam.measures.paired_tables import overall_tables, paired_document
from medexam.measures.shown import signed
from medexam.measures.tables import TableRun
from medexam.measures.verdicts import pair_sentences
from medexam.plugins import load_added
from medexam.programs import build_prediction
from medexam.programs.steps.branches import combine
from medexam.specs.programs.steps import Combine
from medexam.tables import decimal, equals

SECTIONS = "medexam.sections"
"""The group in which packages add parts: frozen dataclasses whose fields typer reads, with a method `finders`."""


def find_further(
    equivalent_within: float | None = None,
    *,
    ensemble: Combine | None = None,
    protocol: bool = False,
    **added: Any,
) -> list[Finder]:
    """Return the finders of the parts; raises `SpecError` for a value that cannot be, and for a part that is not there.

    `equivalent_within` is a margin in percentage points; None tests none. `ensemble` combines the answers of all runs.
    `protocol` says where their protocols differ. `added` are the settings of installed packages' parts, each of which
    looks without being asked to if its settings say so.
    """
    finders: list[Finder] = []
    if equivalent_within is not None:
        if not 0 < equivalent_within < 100:
            raise SpecError(
                f"--equivalent-within {equivalent_within:g}: give percentage points over 0 and under 100, such as 2.0"
            )
        finders.append(partial(find_equivalence, equivalent_within))
    if ensemble is not None:
        finders.append(partial(find_together, ensemble))
    for settings in load_added(SECTIONS).values():
        names = [field.name for field in fields(settings) if field.name in added]
        finders += settings(**{name: added.pop(name) for name in names}).finders()
    if added:
        raise SpecError(f"{', '.join(added)}: no installed package adds this part of a comparison")
    if protocol:
        finders.append(find_protocols)
    return finders


def find_together(rule: Combine, compared: ComparisonScope) -> ComparisonSection:
    """Combine the answers to each compared question, and compare each run with that as the baseline.

    Raises `SpecError` for runs that answer in words.
    """
    if not compared.benchmark.right_or_wrong:
        raise SpecError("--ensemble: the runs answer in words; an ensemble combines numbered options: leave it out")
    combined = {
        question.key: build_prediction(
            question,
            combine(question, [run[question.key] for run in compared.predictions], rule),
            program="ensemble",
            spec_digest="",
            latency_s=0.0,
        )
        for question in compared.items
    }
    items = replace(compared.sets[0], questions=compared.items)
    runs = [RunAnswers(lambda: combined), *compared.predictions]
    paired = pair_runs(compared.benchmark, items, [items, *compared.sets], runs).with_views({})
    names = [f"ensemble of {len(compared.names)} by {rule}", *compared.names]
    rows = [
        TableRun(name, {"Run": name}, each, is_best=False) for name, each in zip(names, paired.metrics, strict=True)
    ]
    pairs = paired_document(paired, items.golds, ["", *compared.run_keys])["pairs"]
    document = {
        "combine": rule,
        "metrics": paired.metrics[0].model_dump(mode="json"),
        "pairs": {pair.pop("run"): pair for pair in pairs},
    }
    titled = [
        replace(table, title=f"Ensemble: {table.title}") for table in overall_tables(compared.benchmark, paired, rows)
    ]
    return ComparisonSection("ensemble", pair_sentences(paired, names), document, titled)


_PHRASES: dict[Told, str] = {"equivalent": "is", "not equivalent": "is not", "not shown": "is not shown to be"}


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
        f"{name} {_PHRASES[verdict]} equivalent to {baseline} within {_points(margin)}: "
        f"{signed(pair.first.difference)}, p {equals(p)} of two one-sided tests (Tango's score test)"
        f"{' after Holm' if len(names) > 1 else ''}."
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
