"""Which answers people judge: evenly over runs and groups, the same questions of all runs where that is possible."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from medexam.datasets.selection import draw_lot
from medexam.metrics.audit import AuditItem


def choose_sample(items: Sequence[AuditItem], per_group: int, seed: int) -> tuple[AuditItem, ...]:
    """At most `per_group` answers of each run in each group, in the order of `items`.

    Questions that most runs have answered come first, and among them lots decide, so that all runs are judged on the
    same questions as far as they share enough. A larger `per_group` with the same seed keeps every answer of a smaller
    one.
    """
    runs_with = Counter(item.key for item in items)
    parts: defaultdict[tuple[str, str], list[AuditItem]] = defaultdict(list)
    for item in items:
        parts[item.run, item.group].append(item)
    kept: set[tuple[str, str]] = set()
    for of_part in parts.values():
        of_part.sort(key=lambda item: (-runs_with[item.key], draw_lot(seed, item.key)))
        kept |= {(item.run, item.key) for item in of_part[:per_group]}
    return tuple(item for item in items if (item.run, item.key) in kept)
