"""`medexam compare --ensemble`: what an ensemble of stored runs would answer, beside its members; nothing is asked.

The ensemble is a run folder for as long as the runs are compared, so that it is scored and tested as any run is.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from medexam.errors import DatasetError, SpecError
from medexam.experiments.compare.result import Comparison
from medexam.experiments.compare.runs import compare_runs
from medexam.experiments.compare.section import Finder
from medexam.experiments.store.data_changes import load_items
from medexam.experiments.store.items import begin_run
from medexam.experiments.store.run_folder import RunFolder, RunRecord, describe_items
from medexam.programs import build_prediction
from medexam.programs.combining.ensembles import Ensemble, StoredAnswers
from medexam.questions import AnySet
from medexam.specs.identity import digest
from medexam.specs.programs.base import MemberSpec
from medexam.specs.programs.ensembles import Combine, EnsembleSpec


def compare_ensemble(folders: Sequence[RunFolder], combine: Combine, finders: Sequence[Finder]) -> Comparison:
    """Compare the ensemble of the runs in `folders`, two or more, with each of them, as `compare_runs` does.

    The ensemble is the baseline.

    It answers the questions that all its members have answered; runs that are ensembles themselves are compared and are
    no members. Raises `SpecError` where fewer than two are left or they answer in words, `DatasetError` where no
    question is answered by all, and what `compare_runs` raises.
    """
    members = [folder for folder in folders if not folder.read_record().cell.program.made_of]
    if len(members) < 2:
        raise SpecError(
            "--ensemble: an ensemble needs two runs or more, and none of them may be an ensemble; name others"
        )
    with tempfile.TemporaryDirectory(prefix="medexam-") as place:
        combined = _combine(members, combine, Path(place))
        return compare_runs([combined, *folders], finders)


def _combine(folders: Sequence[RunFolder], combine: Combine, place: Path) -> RunFolder:
    """Write the ensemble's run folder in `place`."""
    records = [folder.read_record() for folder in folders]
    sets = list(map(load_items, folders))
    for record, items in zip(records, sets, strict=True):
        if items.in_words:
            raise SpecError(f"--ensemble: run {record.run_id} answers in words; an ensemble combines numbered options")
    spec = EnsembleSpec(
        members=tuple(
            MemberSpec(program=member.cell.program, model=member.cell.model if member.cell.program.asks_model else None)
            for member in records
        ),
        combine=combine,
    )
    members = StoredAnswers([folder.read_predictions() for folder in folders])
    in_all = set.intersection(*(set(record.questions) for record in records))
    answered = [
        question for question in sets[0].questions if question.key in in_all and members.find(question) is not None
    ]
    if not answered:
        raise DatasetError("--ensemble: no question is answered by all of the runs; run their specs on the same ones")
    items = sets[0].only(question.key for question in answered)
    record = _record(records, spec, items)
    folder = RunFolder(place / spec.label)
    folder.create()
    begin_run(folder, record, items)
    program = Ensemble(combine, members)
    with folder.appending() as log:
        for question in answered:
            outcome = program(question=question)
            log.append(
                build_prediction(question, outcome, program=spec.label, spec_digest=record.spec_digest, latency_s=0.0)
            )
    return folder


def _record(records: Sequence[RunRecord], spec: EnsembleSpec, items: AnySet) -> RunRecord:
    first = records[0]
    identity = {
        "program": spec.model_dump(mode="json", exclude=spec.by_content),
        "members": [record.spec_digest for record in records],
    }
    return RunRecord(
        run_id=spec.label,
        spec_digest=digest(identity),
        identity=identity,
        cell=first.cell.model_copy(update={"program": spec, "metrics": ()}),
        description="",
        **describe_items(items),
        experiment_digest=first.experiment_digest,
    )
