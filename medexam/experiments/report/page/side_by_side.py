"""Tables of several runs as one: rows under their runs' names, and captions merged."""

import re
from collections.abc import Sequence
from dataclasses import replace

from medexam.tables import Table


def stack(tables: Sequence[Table], names: Sequence[str]) -> list[Table]:
    """Tables of several runs as one, with the run's name before each row; one for each set of headers."""
    stacked: dict[tuple[str, ...], Table] = {}
    for table, name in zip(tables, names, strict=True):
        rows = tuple((name, *cells) for cells in table.rows)
        before = stacked.get(table.headers)
        if before is None:
            stacked[table.headers] = replace(
                table,
                headers=("Run", *table.headers),
                rows=rows,
                best=frozenset(),
                text_columns=table.text_columns + 1,
            )
        else:
            stacked[table.headers] = replace(before, rows=before.rows + rows)
    return list(stacked.values())


def merge(captions: Sequence[str], names: Sequence[str]) -> str:
    """Captions of several runs as one: the sentences that all of them have, then each run's own under its name."""
    sentences = [re.split(r"(?<=\.) ", caption) for caption in captions]
    shared = [each for each in sentences[0] if all(each in others for others in sentences)] if sentences else []
    own = [
        f"{name}: {' '.join(rest)}"
        for name, each in zip(names, sentences, strict=True)
        if (rest := [sentence for sentence in each if sentence not in shared])
    ]
    return " ".join([*shared, *own])
