"""Tables of what passages change: answers that flipped between a run without passages and those that add them."""

from medexam.experiments.compare.baselines import Against, Contrast
from medexam.tables import NONE, Captioned, Table, p_value

SHOWN_FLIPS = 10
"""Questions that are named of each way to flip."""


def contrast_table(contrast: Contrast) -> Captioned:
    """Build one row for each run that adds passages to the baseline, and the caption."""
    rows = tuple(_contrast_row(against) for against in contrast.against)
    headers = ("Program", "n", "Right to wrong", "Wrong to right", "Both right", "Both wrong", "p")
    caption = (
        "Questions, from the baseline to the program; unanswered counts as wrong. "
        "p: McNemar's exact test on the questions that flipped, two-sided."
    )
    left_out = sum(against.flips.left_out for against in contrast.against)
    if left_out:
        caption += f" Left out, failed or missing in either run: {left_out}."
    return Table(f"Against {contrast.baseline.title}", headers, rows), caption


def flipped_tables(against: Against) -> list[Table]:
    """List the first questions of each way to flip, with the passages that were found for them; none where none
    flipped.
    """
    keys_by_flip = {"right to wrong": against.flips.right_to_wrong, "wrong to right": against.flips.wrong_to_right}
    return [
        Table(
            f"{against.run.program}: {flip} ({_shown(len(keys))})",
            ("Question", "Passages, most relevant first"),
            tuple(
                (f"`{key}`", ", ".join(f"`{passage}`" for passage in against.passages[key]) or NONE)
                for key in keys[:SHOWN_FLIPS]
            ),
            text_columns=2,
        )
        for flip, keys in keys_by_flip.items()
        if keys
    ]


def _contrast_row(against: Against) -> tuple[str, ...]:
    flips = against.flips
    counts = (flips.n, len(flips.right_to_wrong), len(flips.wrong_to_right), flips.both_right, flips.both_wrong)
    return (against.run.program, *map(str, counts), p_value(flips.p) if flips.n else NONE)


def _shown(count: int) -> str:
    return str(count) if count <= SHOWN_FLIPS else f"first {SHOWN_FLIPS} of {count}"
