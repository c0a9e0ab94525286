"""The plan of a table of runs: one part for each of its specs, with what each needs and about how long it takes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medexam import MedExamError
from medexam.errors import SpecError
from medexam.experiments import Plan, plan_document, plan_spec
from medexam.specs import build_cells, load_document
from medexam_companions.papers.catalogue import PaperEntry
from medexam_companions.papers.effort import Effort, estimate


@dataclass(frozen=True)
class Part:
    """One spec of a table."""

    spec: str
    plan: Plan | None
    """None where it cannot run here."""
    missing: str = ""
    """What it lacks, and the ways to it; empty if nothing."""

    def document(self) -> dict[str, Any]:
        """Build a JSON-ready document, with an entry for each run."""
        cells = [] if self.plan is None else plan_document(self.plan)
        efforts = [] if self.plan is None else [estimate(planned) for planned in self.plan.cells]
        return {
            "spec": self.spec,
            "missing": self.missing or None,
            "cells": [cell | effort.document() for cell, effort in zip(cells, efforts, strict=True)],
        }

    @property
    def efforts(self) -> list[Effort]:
        """What each of its runs takes."""
        return [] if self.plan is None else [estimate(planned) for planned in self.plan.cells]


def plan_parts(
    entry: PaperEntry,
    overrides: Mapping[str, Any],
    limit: int | None,
    only: tuple[str, ...],
    *,
    runs_dir: Path,
    only_look: bool,
) -> list[Part]:
    """Plan the parts of a table; those that cannot run here say what they lack.

    `only` names the specs that are wanted; empty wants all. An override reaches the parts that it fits. Raises
    `SpecError` if it fits none or a name in `only` is unknown, and what the first part lacks if none can run.
    """
    specs = entry.item.specs
    if unknown := [name for name in only if name not in specs]:
        raise SpecError(f"--only {unknown[0]}: {entry.name} is made of {', '.join(specs)}")
    spec_names = [spec for spec in specs if spec in only] if only else list(specs)
    documents = {spec: load_document(spec) for spec in spec_names}
    fits = {spec: {key for key in overrides if _fits(documents[spec], key, overrides[key])} for spec in spec_names}
    if unused_keys := [key for key in overrides if not any(key in keys for keys in fits.values())]:
        build_cells(documents[spec_names[0]], {unused_keys[0]: overrides[unused_keys[0]]})
    parts, first_error = [], None
    for spec in spec_names:
        part_overrides = {key: overrides[key] for key in overrides if key in fits[spec]}
        try:
            plan = plan_spec(documents[spec], part_overrides, limit, runs_dir=runs_dir, only_look=only_look)
        except MedExamError as error:
            first_error = first_error or error
            parts.append(Part(spec, None, str(error)))
        else:
            parts.append(Part(spec, plan))
    if first_error is not None and not only_look and all(part.plan is None for part in parts):
        raise first_error
    return parts


def _fits(document: Mapping[str, Any], key: str, value: Any) -> bool:
    try:
        build_cells(document, {key: value})
    except SpecError:
        return False
    return True
