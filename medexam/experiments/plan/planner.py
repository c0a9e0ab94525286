"""From a spec to what will run: the questions, words, identity and run folder of each cell.

Planning reads data sets and run folders and asks no model; `medexam plan` prints it, `medexam run` carries it out.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from medexam.datasets import find_files
from medexam.datasets.pictures import show_pictures
from medexam.errors import (
    CommitUnknownError,
    CorpusUnreachableError,
    DatasetError,
    EngineError,
    MedExamError,
    RunFolderError,
    SpecError,
)
from medexam.experiments.plan.cells import PlannedCell, build_cell_program
from medexam.experiments.plan.leakage import check_demonstrations
from medexam.experiments.plan.lookup import Retrieval
from medexam.experiments.plan.plans import Plan
from medexam.experiments.plan.prompt_samples import asked_words, sample_prompts
from medexam.experiments.store.items import as_asked
from medexam.experiments.store.run_folder import RunFolder
from medexam.measures import find_benchmark
from medexam.measures.own import load_metric
from medexam.plugins import hash_source
from medexam.process import gc_seldom
from medexam.questions import AnySet, Language, Task
from medexam.retrievers.building import PlannedRetriever, plan_retriever
from medexam.specs import CellSpec, DatasetSpec, ModelSpec, RetrieverSpec, build_cells
from medexam.specs.base import OWN_METRICS
from medexam.specs.dataset import EXAMPLES
from medexam.specs.experiment import ExperimentSpec
from medexam.specs.identity import build_identity, differing_keys, digest
from medexam.specs.programs.needs import RetrievalSettings
from medexam.text import print_notice
from medexam.weights import Weights, find_encoder_weights


def plan_experiment(
    document: Mapping[str, Any],
    overrides: Mapping[str, Any],
    *,
    runs_dir: Path,
    fresh: bool = False,
    repeat: int = 0,
    keeps_items: bool = True,
    only_look: bool = False,
) -> Plan:
    """Plan what running `document` under `overrides` would do: runs that exist are continued.

    `fresh` starts new runs beside those that exist. `repeat` asks each run's questions that often again. `keeps_items`
    False leaves the questions out of the folders. `only_look` makes a plan that is not carried out: a corpus of the hub
    that cannot be fetched, or an encoder whose commit is unknown, is a warning then, and the cell counts as a run that
    was not begun. Raises `SpecError` and `DatasetError`.
    """
    experiment, cells = resolve_cells(document, overrides, only_look=only_look)
    sources = _Sources(only_look=only_look)
    parts: dict[tuple[str, DatasetSpec, str], PlannedCell] = {}
    for item in map(sources.prepare, cells):
        # One run of an experiment differs from another in its digest, in what is selected, or in how replies are read.
        parts.setdefault((item.spec_digest, item.cell.dataset, item.cell.program.read_as), item)
    described = {"description": experiment.description, "fresh": fresh, "keeps_items": keeps_items}
    planned, repeats, alike = list[PlannedCell](), list[PlannedCell](), Counter(key for key, *_ in parts)
    for item in parts.values():
        cell, dataset = item.cell, item.cell.dataset
        words = [cell.name, *([cell.model.label] if item.asks_model else []), cell.program.label, dataset.language]
        if alike[item.spec_digest] > 1:
            # A folder holds one selection, read in one way.
            whole = dataset.whole.model_dump(mode="json") | {"reading": "strict"}
            asked = dataset.model_dump(mode="json") | {"reading": cell.program.read_as}
            words[0] += "".join(f" {name} {value}" for name, value in asked.items() if value != whole[name])
        words += [dataset.alter.label] if dataset.alter else []
        folder = RunFolder.last_or_new(words, item.spec_digest, runs_dir, fresh=fresh)
        planned.append(_begin(item, folder, described).with_lender())
        numbers = range(1, repeat + 1) if item.asks_model else ()
        repeats += [_begin(item, folder.repeat(number), described) for number in numbers]
    if repeat and not repeats:
        raise SpecError("--repeat: no program of this plan asks a model; leave it out")
    return Plan(experiment.name, (*planned, *repeats), runs_dir)


def plan_resume(folder: RunFolder, but: Collection[str] = ()) -> Plan:
    """Plan what continuing one run would do: its own cell and its own questions, as its folder keeps them.

    Code that the run's spec names is run. Raises `RunFolderError` if what its answers depend on has changed, the texts
    of its data included and the keys in `but` left out, and `DatasetError` if its data cannot be read.
    """
    record = folder.read_record()
    if record.cell.dataset.kind == EXAMPLES:
        raise RunFolderError(
            f"run {record.run_id} cannot continue from its folder, because its module, model and metric are objects "
            "of a script; run that script again to ask the pending examples"
        )
    item = _Sources(only_look=False).prepare(record.cell, record.cell.dataset.whole, record.questions)
    try:
        questions = as_asked(record, item.question_set)
    except DatasetError as error:
        raise RunFolderError(str(error)) from None
    changed = [key for key in differing_keys(item.identity, record.identity) if key not in but]
    if changed and item.spec_digest != record.spec_digest:
        raise RunFolderError(
            f"run {record.run_id} cannot continue: what its answers depend on has changed ({', '.join(changed)}); "
            "restore it, or run its spec to start another run"
        )
    described = {name: getattr(record, name) for name in ("description", "fresh", "keeps_items")}
    planned = _begin(replace(item, question_set=questions), folder, described)
    return Plan(record.cell.name, (planned,), folder.path.parent)


def _begin(item: PlannedCell, folder: RunFolder, described: dict[str, Any]) -> PlannedCell:
    """Return a prepared cell with its folder; raises `SpecError` if its demonstrations give questions away."""
    check_demonstrations(item.cell.program, item.program, item.question_set.questions)
    return replace(item, folder=folder, **described).updated()


def resolve_cells(
    document: Mapping[str, Any], overrides: Mapping[str, Any], *, only_look: bool
) -> tuple[ExperimentSpec, list[CellSpec]]:
    """Build the experiment and its cells, models named as `name_model` names them.

    Raises `SpecError`, and `EngineError` for an unknown profile and for a server that does not tell its model.
    """
    experiment, cells = build_cells(document, overrides)
    name_once = cache(lambda model: name_model(model, only_look=only_look))
    return experiment, [
        cell.model_copy(
            update={
                "model": name_once(cell.model) if cell.program.asks_model else cell.model,
                "models": {name: name_once(model) for name, model in cell.asked_models.items()},
            }
        )
        for cell in cells
    ]


def name_model(model: ModelSpec, *, only_look: bool) -> ModelSpec:
    """Return a model with all that its profile says, and with the name that its server gives it.

    With `only_look`, a server that is not there leaves its model without a name.
    """
    # Imported here: a plan that asks no model needs none of what does.
    from medexam.serve.build import with_served_name
    from medexam.serve.launch.profile import with_profile

    model = with_profile(model)
    if model.path:
        # A run is resumed from any folder.
        model = model.model_copy(update={"path": model.path.expanduser().absolute()})
    try:
        return with_served_name(model)
    except EngineError as error:
        if not only_look:
            raise
        print_notice(f"warning: {error}; without its model it is unknown which run this is")
        return model


class _Sources:
    """Data sets, corpora and models' identities, each looked at once for all cells of a plan."""

    def __init__(self, *, only_look: bool) -> None:
        self._only_look = only_look
        # Without a way back to itself, so that its data sets are let go with it.
        load = cache(_load)
        self._load, self._plan_retriever = load, cache(_plan_retriever)
        self._model = cache(lambda spec: _describe_model(spec, only_look=only_look))
        self._show = cache(lambda data, side, keys: show_pictures(load(data), data, side, keys))
        self._prompts: dict[str, list[str | None] | None] = {}

    def prepare(
        self, cell: CellSpec, data: DatasetSpec | None = None, keys: tuple[str, ...] | None = None
    ) -> PlannedCell:
        """Return the cell with its questions and everything that its answers depend on, without a folder.

        `data` None: the questions that the cell selects. `keys`: those of the questions whose pictures must be here, if
        they are shown; None: all of them. Raises `SpecError`, `DatasetError` and `EngineError`.
        """
        program, language, data = cell.program, cell.dataset.language, data or cell.dataset
        asking = program.asking
        for name in cell.metrics:
            # Before anything is asked; a look at a plan imports none.
            hash_source(name, OWN_METRICS) if self._only_look else load_metric(name)
        question_set, pictures = self._load(data), None
        if data.is_own:
            _check_answerable(cell, question_set)
        if asking.pictures is not None:
            if data.is_own:
                raise SpecError(
                    f"program.images: code of your own reads the questions of {data.called}, without "
                    "pictures: set it to hidden"
                )
            question_set, pictures = self._show(data, asking.pictures, keys)
        reader = None if asking.local_reader is None else self._find_reader(*asking.local_reader)
        retrieval = None if asking.retrieval is None else self._plan_retrieval(cell, asking.retrieval)
        identity = build_identity(
            cell,
            fingerprint=question_set.fingerprint,
            words=asked_words(program, language),
            retriever=retrieval.identity if retrieval else None,
            translations=retrieval.translations.fingerprint if retrieval and retrieval.translations else None,
            model=self._model(cell.model) if program.asks_model else None,
            models={name: self._model(model) for name, model in cell.asked_models.items()},
            reader=None if reader is None else {"revision": reader.revision},
            pictures=pictures,
            prompts=self._prompts_of(cell) if program.asks_model else None,
            dspy=None if asking.adapter is None else version("dspy"),
        )
        benchmark = find_benchmark(cell.dataset)
        module = build_cell_program(
            cell,
            retrieval,
            reader=reader,
            in_order=lambda split: benchmark.load(cell.dataset.whole.model_copy(update={"split": split})).questions,
        )
        return PlannedCell(cell, question_set, module, identity, RunFolder(Path()), retrieval)

    def _find_reader(self, name: str | Path, revision: str | None) -> Weights:
        try:
            return find_encoder_weights(name, revision)
        except CommitUnknownError:
            if not self._only_look:
                raise
            return Weights(str(name), str(name), "unknown", hub=True)

    def _plan_retrieval(self, cell: CellSpec, settings: RetrievalSettings) -> Retrieval:
        """Plan the passages of a cell, with nothing looked up yet; raises `SpecError` where `k` exceeds the corpus."""
        dataset, language = cell.dataset, settings.query_language or cell.dataset.language
        translations = None if language == dataset.language else self._translate(dataset, language)
        planned = self._plan_retriever(settings.retriever)
        if isinstance(planned, MedExamError):
            if not self._only_look:
                raise planned
            return Retrieval(settings, warnings=(str(planned),), translations=translations)
        planned.check_depth(settings.k)
        return Retrieval(settings, planned, planned.warnings(language), translations)

    def _translate(self, dataset: DatasetSpec, language: Language) -> AnySet:
        """Load the questions in the language of the queries."""
        if dataset.kind is not None or dataset.alter is not None:
            raise SpecError(
                "program.query_language: questions of your own and altered ones have no translation to look up: leave "
                "it out"
            )
        # A path may name the file of one language, beside which the other lies, or beside whose folder.
        places = [] if dataset.path is None else [dataset.path, *list(dataset.path.expanduser().parents)[:2]]
        path = next((place for place in places if place.is_dir() and find_files(dataset.name, language, place)), None)
        return self._load(
            DatasetSpec(name=dataset.name, language=language, path=path, as_published=dataset.as_published)
        )

    def _prompts_of(self, cell: CellSpec) -> list[str | None] | None:
        """Return `sample_prompts` of the cell, looked at once for all that are asked alike."""
        budgets = [model.max_tokens for model in (cell.model, *cell.asked_models.values())]
        asked_as = [cell.dataset.language, cell.dataset.question_form, budgets, cell.program.model_dump(mode="json")]
        key = digest({"asked_as": asked_as})
        if key not in self._prompts:
            self._prompts[key] = sample_prompts(cell)
        return self._prompts[key]


def _describe_model(spec: ModelSpec, *, only_look: bool) -> Mapping[str, Any]:
    from medexam.serve.build import known_model

    with suppress(*[EngineError] * only_look):
        return known_model(spec)
    return {"engine": spec.engine}


def _load(spec: DatasetSpec) -> AnySet:
    benchmark = find_benchmark(spec)
    with gc_seldom():
        questions: AnySet = benchmark.load(spec)
    benchmark.check()
    return questions


def _plan_retriever(spec: RetrieverSpec) -> PlannedRetriever | MedExamError:
    try:
        return plan_retriever(spec)
    except (CorpusUnreachableError, CommitUnknownError) as error:
        return error


def _check_answerable(cell: CellSpec, items: AnySet) -> None:
    """Raise `SpecError` if the program does not answer the questions of a benchmark of one's own; `specs.matrix` knows
    of every other.
    """
    asking, groups = cell.program.asking, {item.group for item in items.questions if isinstance(item, Task)}
    unasked = groups - {*asking.groups} if asking.groups else set[str]()
    if unasked or (asking.forms is not None and bool(groups) == ("choice" in asking.forms)):
        form = "are answered in words" if groups else "have numbered options"
        raise SpecError(
            f"program {cell.program.kind} has no prompt for the questions of {cell.dataset.called}, which {form}"
            f"{f' (group {min(unasked)})' if unasked else ''}: set another program.kind, or a module of your own"
        )
