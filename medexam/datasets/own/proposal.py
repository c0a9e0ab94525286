"""A proposal in the making: how a file of questions may be read, and the rows that it is made from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from medexam.datasets.own.columns import columns_in
from medexam.datasets.own.names import find_groups
from medexam.datasets.own.tables import SourceTable
from medexam.datasets.rows import Row, TaskRow
from medexam.questions import Language
from medexam.specs import DatasetSpec
from medexam.specs.dataset import NOT_READ, KeySpec, OwnKind

LOOKED_AT = 400
"""Rows, spread over the file, that show what its columns are; all rows are then read so."""


@dataclass
class Proposal:
    """How a file of questions may be read, as far as that is known, and what it gives."""

    table: SourceTable
    answers: KeySpec | None
    """The key in another file; None if there is none."""
    kind: OwnKind
    columns: dict[str, Any] = field(default_factory=dict)
    """As the spec has them; None reads a field from no column."""
    language: Language | None = None
    """None if it is not told, or none that ships."""
    notes: list[str] = field(default_factory=list)
    """What was recognised, a line each."""
    open: dict[str, str] = field(default_factory=dict)
    """Key of the `dataset` part of a spec -> what has to be decided before a run."""
    rows: Sequence[Row] | Sequence[TaskRow] = ()
    """The questions so read; empty if `columns` are open."""
    agreeing: list[str] = field(default_factory=list)
    """Columns that give the same answers as the one that is read."""

    @cached_property
    def sample(self) -> SourceTable:
        """Rows that are spread over the table."""
        return replace(self.table, rows=self.table.rows[:: max(1, len(self.table.rows) // LOOKED_AT)])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns; instead of one that holds records, the fields of these."""
        return tuple(inner for column in self.table.columns for inner in self._within(column, 0))

    def ask(self, name: str, question: str) -> None:
        """Leave a field of `columns` open."""
        self.columns[name] = None
        self.open[f"columns.{name}"] = " ".join(question.split())

    def read_from(self, field: str) -> list[str]:
        """List the columns that a field is read from."""
        return columns_in(self.columns.get(field))

    def unused(self) -> list[str]:
        """List the columns that no field is read from."""
        used = {column for value in self.columns.values() for column in columns_in(value)}
        return [column for column in self.names if column not in used]

    def spec(self, columns: Mapping[str, Any]) -> DatasetSpec:
        """Make the spec that reads the table so; None as a column switches its field off, where a field can be."""
        stated = {name: NOT_READ if column is None else column for name, column in columns.items()}
        return DatasetSpec.model_validate({"kind": self.kind, "path": Path(self.table.source), "columns": stated})

    def lines(self, path: Path) -> list[str]:
        """Write the `dataset` part of a spec that reads `path` as proposed; open lines end in `# decide:`."""
        answers = None if self.answers is None else self.answers.model_dump(mode="json", exclude_none=True)
        tree = {"kind": self.kind, "path": str(path), "language": self.language, "answers": answers}
        entries: list[tuple[str, str, Any]] = [("", name, value) for name, value in tree.items() if value is not None]
        entries += [("  ", name, value) for name, value in self.columns.items()]
        entries += [("", "skip_bad", False)] if "skip_bad" in self.open else []
        lines = []
        for indent, name, value in entries:
            text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=float("inf")).strip()
            text = text.removesuffix("...").strip()
            undecided = self.open.get(f"columns.{name}" if indent else name)
            if undecided is not None:
                text = f"{'' if value is None else text}  # decide: {' '.join(undecided.split())}"
            lines.append(f"{indent}{name}: {text}")
        place = next((n for n, line in enumerate(lines) if line.startswith(" ")), len(lines))
        return [*lines[:place], "columns:", *lines[place:]]

    def _within(self, column: str, depth: int) -> Iterator[str]:
        values = self.sample.filled(column)

        def is_record(value: Any) -> bool:
            """Return whether a value is a record, and no mapping of labels and texts."""
            if not isinstance(value, Mapping) or "answer_start" in value:
                return False
            lists = [isinstance(value.get(name), list) for name in ("text", "label")]
            groups = find_groups(map(str, value))
            return not all(lists) and (any(lists) or not groups or len(groups[0][0]) < len(value) - 1)

        if values and depth < 2 and all(map(is_record, values)):
            for name in dict.fromkeys(name for record in values for name in record):
                yield from self._within(f"{column}.{name}", depth + 1)
        else:
            yield column
