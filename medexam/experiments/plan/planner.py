"""From a spec to what will run: the questions, words, identity and run folder of each cell.

Planning reads data sets and run folders and asks no model; `medexam plan` prints it, `medexam run` carries it out.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from medexam.errors import RunFolderError, SpecError
from medexam.experiments.plan.cells import AnyCell, Plan, PlannedCell, take_stock
from medexam.experiments.plan.leakage import check_demonstrations
from medexam.experiments.plan.lending import describe_lent, with_lender
from medexam.experiments.plan.nearest_demonstrations import NearestDemonstrations
from medexam.experiments.plan.passage_lookup import ReadAhead, TextSearch
from medexam.experiments.plan.resolve import resolve_cells
from medexam.experiments.plan.sources import Prepared, Sources
from medexam.experiments.store.items import (
    as_asked,
    describe_golds,
    describe_replaced,
    describe_texts,
)
from medexam.experiments.store.run_folder import RunFolder, find_run
from medexam.measures import find_benchmark
from medexam.programs import ProgramContext, build_program
from medexam.programs.wrapping import find_nearest
from medexam.specs import CellSpec, DatasetSpec
from medexam.specs.dataset import EXAMPLES
from medexam.specs.identity import differing_keys, digest


def plan_experiment(
    document: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    runs_dir: Path,
    fresh: bool = False,
    repeat: int = 0,
    only_look: bool = False,
) -> Plan:
    """Plan what running `document` under `overrides` would do: runs that exist are continued.

    `fresh` starts new runs beside those that exist. `repeat` asks each run's questions that often again. `only_look`
    makes a plan that is not carried out: a corpus of the hub that cannot be fetched, or an encoder whose commit is
    unknown, is a warning then, and the cell counts as a run that was not begun. Raises `SpecError`, `DatasetError`, or
    `RunFolderError` where a run's folder holds another.
    """
    experiment, cells = resolve_cells(document, overrides, only_look=only_look)
    sources = Sources(only_look=only_look)
    by_key: dict[tuple[str, DatasetSpec], Prepared] = {}
    for cell in cells:
        item = sources.prepare(cell)
        # One run of an experiment differs from another in its digest or in the questions that are selected.
        by_key.setdefault((digest(item.identity), cell.dataset), item)
    identities = [digest(item.identity) for item in by_key.values()]
    experiment_digest = digest({"name": experiment.name, "cells": identities})
    described: dict[str, Any] = {"description": experiment.description, "experiment_digest": experiment_digest}
    planned, repeats = list[AnyCell](), list[AnyCell]()
    for place, item in enumerate(by_key.values()):
        whole = _planned(item, _folder(item.cell, item.identity, runs_dir, fresh), place=place, **described)
        planned.append(whole if fresh else with_lender(whole))
        numbers = range(1, repeat + 1) if whole.asks_model else ()
        repeats += [_planned(item, whole.folder.repeat(each), repeat=each, **described) for each in numbers]
    if repeat and not repeats:
        raise SpecError("--repeat: no program of this plan asks a model; leave it out")
    return Plan(experiment.name, (*planned, *repeats), runs_dir, _news(planned), fresh=fresh)


def plan_resume(run: str, *, runs_dir: Path, but: Collection[str] = ()) -> Plan:
    """Plan what continuing one run would do: its own cell and its own questions, as its folder keeps them.

    `run` is a run's folder, or its id in `runs_dir`. Code that the run's spec names is run. Raises `RunFolderError` if
    there is no such run, or if what its answers depend on has changed, the texts of its data included and the keys in
    `but` left out, and `DatasetError` if its data cannot be read.
    """
    folder = find_run(run, runs_dir)
    record = folder.read_record()
    if record.cell.dataset.kind == EXAMPLES:
        raise RunFolderError(
            f"run {record.run_id} cannot continue from its folder, because its module, model and metric are objects "
            "of a script; run that script again to ask the pending examples"
        )
    prepared = Sources(only_look=False).prepare(record.cell, record.cell.dataset.whole, record.questions)
    data = prepared.question_set
    if (text_note := describe_texts(record, data)) is not None:
        raise RunFolderError(
            f"run {record.run_id} cannot continue: {text_note}; restore {record.dataset_source}, "
            "or run its spec without --resume to ask the present texts in another run"
        )
    changed = [key for key in differing_keys(prepared.identity, record.identity) if key not in but]
    if changed and digest(prepared.identity) != record.spec_digest:
        keys = ", ".join(changed)
        raise RunFolderError(
            f"run {record.run_id} cannot continue: what its answers depend on has changed ({keys}); restore it, or "
            "run its spec to start another run"
        )
    prepared = replace(prepared, question_set=as_asked(record, data))
    described = {name: getattr(record, name) for name in ("place", "description", "experiment_digest")}
    described["repeat"] = folder.repeat_number
    planned = _planned(prepared, folder, **described)
    return Plan(record.cell.name, (planned,), folder.path.parent, _news([planned]))


def plan_stored(path: Path) -> AnyCell:
    """Plan the run in a folder as it was planned, whatever version read its replies; raises as `plan_resume` does."""
    return plan_resume(str(path), runs_dir=path.parent, but={"reader_version"}).cells[0]


def _news(cells: Sequence[AnyCell]) -> tuple[str, ...]:
    """Describe what has changed in the data of the runs that the cells continue, or replace."""
    lines = [describe_lent(cell) for cell in cells]
    lines += (
        describe_golds(cell.folder, cell.folder.read_record(), cell.question_set)
        if cell.folder.exists()
        else describe_replaced(cell.folder, cell.spec_digest, cell.identity)
        for cell in cells
    )
    return tuple(line for line in lines if line is not None)


def _planned(prepared: Prepared, folder: RunFolder, **described: Any) -> AnyCell:
    cell, data, retrieval, reader = prepared.cell, prepared.question_set, prepared.retrieval, prepared.reader
    spec_digest = digest(prepared.identity)
    folder = replace(folder, spec_digest=spec_digest)
    benchmark = find_benchmark(cell.dataset)
    pending, right, answered = take_stock(folder, data, benchmark)
    reading = None if reader is None else ReadAhead(reader, pending, retrieval)
    context = ProgramContext(
        max_tokens=cell.model.max_tokens,
        budgets={name: model.max_tokens for name, model in cell.asked_models.items()},
        finder=retrieval,
        search=TextSearch(retrieval) if retrieval is not None else None,
        nearest=NearestDemonstrations,
        reader=reading,
        supports=None if retrieval is None else reading,
        in_order=lambda split: benchmark.load(cell.dataset.whole.model_copy(update={"split": split})).questions,
    )
    program = build_program(cell.program, cell.dataset.language, context)
    finder = find_nearest(program)
    check_demonstrations(cell.program, program, data.questions)
    return PlannedCell(
        cell=cell,
        question_set=data,
        program=program,
        identity=prepared.identity,
        spec_digest=spec_digest,
        folder=folder,
        retrieval=retrieval,
        nearest=finder if isinstance(finder, NearestDemonstrations) else None,
        pending=pending,
        right=right,
        answered=answered,
        **described,
    )


def _folder(cell: CellSpec, identity: dict[str, Any], runs_dir: Path, fresh: bool) -> RunFolder:
    """Find the last run of this experiment and digest, or choose a new name, with `fresh` in any case."""
    model = [cell.model.label] if cell.program.asks_model else []
    alteration = [cell.dataset.alter.label] if cell.dataset.alter else []
    words = [cell.name, *model, cell.program.label, cell.dataset.language, *alteration]
    folder = RunFolder.last_or_new(words, digest(identity), runs_dir, fresh=fresh)
    if folder.exists() and (record := folder.read_record()).spec_digest != digest(identity):
        keys = ", ".join(differing_keys(identity, record.identity))
        raise RunFolderError(
            f"run {folder.name} was made under another spec (it differs in {keys}); "
            "move it away, or start another run beside it with --fresh"
        )
    return folder
