"""`medexam compare --strengths`: many runs among each other, with intervals that hold for all of them at once."""

from medexam.errors import SpecError
from medexam.experiments import ComparisonScope, ComparisonSection
from medexam.tables import NONE, Table
from medexam_companions.analysis.bradley_terry import compare_strengths, takes_clusters


def find_strengths(compared: ComparisonScope) -> ComparisonSection:
    """Compare the strengths of three runs or more; raises `SpecError` if there are fewer."""
    if len(compared.folders) < 3:
        raise SpecError("--strengths sets three runs or more in an order: name another run, or leave it out")
    names, keys, clusters = compared.names, compared.run_keys, compared.scored.clusters
    independent = compared.statistics.clusters if takes_clusters(clusters) else "questions within exams"
    strengths = compare_strengths(compared.scored.first, clusters)
    order = sorted(range(len(strengths)), key=lambda run: -strengths[run]["strength"])
    rows = tuple(
        (
            *(str(number), names[run], str(strengths[run]["wins"]), str(strengths[run]["losses"])),
            "{:+.2f} [{:.2f}, {:.2f}]".format(strengths[run]["strength"], *strengths[run]["interval"]),
            ", ".join(str(order.index(rival) + 1) for rival in order if rival in strengths[run]["not_separable"])
            or NONE,
        )
        for number, run in enumerate(order, start=1)
    )
    caption = (
        "Wins: questions that the run has right and another has not, over all others; losses the other way. "
        "Strength: Bradley and Terry's, the natural logarithm of the odds of a win against the mean run, with 95 % "
        f"intervals for all runs at once, taking {independent} as independent. Not separable: numbers of the "
        "runs whose difference in strength may be 0, at 95 % for all pairs at once."
    )
    headers = ("No.", "Run", "Wins", "Losses", "Strength", "Not separable from")
    table = Table("Strengths of all runs", headers, rows, text_columns=2, caption=caption)
    pairs = len(strengths) * (len(strengths) - 1) // 2
    separable = pairs - sum(len(run["not_separable"]) for run in strengths) // 2
    others = ", ".join(names[run] for run in order if run in strengths[order[0]]["not_separable"])
    first = names[order[0]]
    sentences = [
        f"{separable} of {pairs} pairs of runs are separable in strength, at 95 % for all pairs at once.",
        f"Not separable from the strongest, {first}: {others}."
        if others
        else f"{first} is stronger than every other run.",
    ]
    document = {
        "independent": independent,
        "runs": {
            key: run | {"not_separable": [keys[rival] for rival in run["not_separable"]]}
            for key, run in zip(keys, strengths, strict=True)
        },
    }
    return ComparisonSection("strengths", sentences, document, [table])
