"""What cells read: data sets, corpora and models' identities, each looked at once for all cells of a plan."""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from medexam.datasets import find_files
from medexam.datasets.pictures.showing import show_pictures
from medexam.encoder_weights import find_encoder_weights
from medexam.errors import CommitUnknownError, CorpusUnreachableError, EngineError, MedExamError, SpecError
from medexam.experiments.plan.passage_lookup import HitCache, Retrieval, local_reader
from medexam.experiments.plan.prompt_samples import sample_prompts
from medexam.experiments.plan.words import asked_words
from medexam.files import cache_dir
from medexam.gc_pause import gc_seldom
from medexam.measures import find_benchmark
from medexam.measures.own import load_metric
from medexam.plugins import hash_source
from medexam.questions import AnySet, Task
from medexam.retrievers.base import Retriever
from medexam.retrievers.building import PlannedRetriever, plan_retriever
from medexam.serve.naming import known_model
from medexam.specs import CellSpec, DatasetSpec, ModelSpec, RetrieverSpec
from medexam.specs.identity import build_identity, digest
from medexam.specs.names import OWN_METRICS
from medexam.specs.programs.needs import ReaderSettings


@dataclass(frozen=True)
class Prepared:
    """A cell with what it reads."""

    cell: CellSpec
    question_set: AnySet
    identity: dict[str, Any]
    retrieval: Retrieval | None
    reader: ReaderSettings | None
    """The local model with its content as the revision; None where the program has none."""


class Sources:
    """Data sets and corpora, each read once for all cells."""

    def __init__(self, *, only_look: bool) -> None:
        self._only_look = only_look
        self._load, self._plan_retriever = cache(_load), cache(_plan_retriever)
        self._model = cache(partial(_describe_model, only_look=only_look))
        self._prompts: dict[str, list[str | None] | None] = {}
        self._picture_sets: dict[tuple[DatasetSpec, int], tuple[AnySet, dict[str, Any]]] = {}

    def prepare(self, cell: CellSpec, data: DatasetSpec | None = None, keys: Collection[str] | None = None) -> Prepared:
        """Return the cell with its questions and everything that its answers depend on.

        `data` None: the questions that the cell selects. `keys`: those of the questions whose pictures must be here, if
        they are shown; None: all of them. Raises `SpecError`, `DatasetError` and `EngineError`.
        """
        program, language = cell.program, cell.dataset.language
        for name in cell.metrics:
            # Before anything is asked; a look at a plan imports none.
            hash_source(name, OWN_METRICS) if self._only_look else load_metric(name)
        data = data or cell.dataset
        question_set, pictures = self._load(data), None
        if data.is_own:
            _check_answerable(cell, question_set)
        if program.asking.pictures is not None:
            if data.is_own:
                raise SpecError(
                    f"program.images: code of your own reads the questions of {data.called}, without "
                    "pictures: set it to hidden"
                )
            key = data, program.asking.pictures
            if key not in self._picture_sets:
                self._picture_sets[key] = show_pictures(question_set, data, program.asking.pictures, keys)
            question_set, pictures = self._picture_sets[key]
        reader = self._pin_reader(program.asking.local_reader)
        retrieval, retriever, translations = None, None, None
        if program.asking.retrieval is not None:
            translations = self._translations(cell)
            retrieval, retriever = self._plan_retrieval(cell, translations)
        identity = build_identity(
            cell,
            fingerprint=question_set.fingerprint,
            words=asked_words(program, language),
            retriever=retriever,
            translations=translations.fingerprint if translations else None,
            model=self._model(cell.model) if program.asks_model else None,
            models={name: self._model(model) for name, model in cell.asked_models.items()},
            # What its answers depend on: its content, and how texts are cut for it.
            reader=None if reader is None else {"revision": reader.revision, "tokens": [*local_reader(reader).tokens]},
            pictures=pictures,
            prompts=self._prompts_of(cell) if program.asks_model else None,
            dspy=None if program.asking.module_adapter is None else version("dspy"),
        )
        return Prepared(cell, question_set, identity, retrieval, reader)

    def _plan_retrieval(self, cell: CellSpec, translations: AnySet | None) -> tuple[Retrieval, dict[str, Any]]:
        """Plan the passages of a cell, with nothing looked up yet, and return what identifies the retriever.

        Raises `SpecError` where `k` exceeds the corpus, or what the method can rank. A look at a plan of a corpus that
        is not here has no size.
        """
        settings: Any = cell.program.asking.retrieval
        queries = None if translations is None else {question.key: question for question in translations.questions}
        planned = self._plan_retriever(settings.retriever)
        if isinstance(planned, MedExamError):
            reason = planned
            if not self._only_look:
                raise reason

            def build(_: object) -> Retriever:
                raise reason

            unread = Retrieval(settings, build, HitCache(Path(), ""), None, (str(reason),), queries)
            return unread, settings.retriever.model_dump(mode="json")
        planned.check_depth(settings.k)
        hits = HitCache(cache_dir() / "retrieval", digest(planned.identity))
        warnings = planned.warnings(settings.query_language or cell.dataset.language)
        retrieval = Retrieval(settings, partial(planned.open, cache_dir()), hits, planned.size, warnings, queries)
        return retrieval, planned.identity

    def _pin_reader(self, reader: ReaderSettings | None) -> ReaderSettings | None:
        """Set the local model's content as the settings' revision: its folder's fingerprint, or a hub model's commit.

        Raises `EngineError` where its folder is missing or holds no safetensors, or nobody tells the commit.
        """
        if reader is None:
            return None
        try:
            return dataclasses.replace(reader, revision=find_encoder_weights(reader.model, reader.revision).revision)
        except CommitUnknownError:
            if not self._only_look:
                raise
            return reader

    def _prompts_of(self, cell: CellSpec) -> list[str | None] | None:
        """Return `sample_prompts` of the cell, looked at once for all that are asked alike."""
        budgets = [model.max_tokens for model in (cell.model, *cell.asked_models.values())]
        asked_as = [cell.dataset.language, cell.dataset.question_form, budgets, cell.program.model_dump(mode="json")]
        key = digest({"asked_as": asked_as})
        if key not in self._prompts:
            self._prompts[key] = sample_prompts(cell)
        return self._prompts[key]

    def _translations(self, cell: CellSpec) -> AnySet | None:
        """Load the questions in the language of the queries; None where that is their own."""
        dataset, retrieval = cell.dataset, cell.program.asking.retrieval
        language = None if retrieval is None else retrieval.query_language
        if language is None or language == dataset.language:
            return None
        if dataset.kind is not None:
            raise SpecError("program.query_language: questions of your own have one language: leave it out")
        if dataset.alter is not None:
            raise SpecError("program.query_language: altered questions have no translation to look up: leave it out")
        # A path may name the file of one language, beside which the other lies, or beside whose folder.
        places = [] if dataset.path is None else [dataset.path, *list(dataset.path.expanduser().parents)[:2]]
        path = next((place for place in places if place.is_dir() and find_files(dataset.name, language, place)), None)
        return self._load(
            DatasetSpec(name=dataset.name, language=language, path=path, as_published=dataset.as_published)
        )


def _load(spec: DatasetSpec) -> AnySet:
    benchmark = find_benchmark(spec)
    with gc_seldom():
        questions: AnySet = benchmark.load(spec)
    benchmark.check()
    return questions


def _plan_retriever(spec: RetrieverSpec) -> PlannedRetriever | MedExamError:
    """Plan a retriever; return why what it would search is not known here."""
    try:
        return plan_retriever(spec)
    except (CorpusUnreachableError, CommitUnknownError) as error:
        return error


def _describe_model(spec: ModelSpec, *, only_look: bool) -> Mapping[str, Any]:
    try:
        return known_model(spec)
    except EngineError:
        if not only_look:
            raise
        return {"engine": spec.engine}


def _check_answerable(cell: CellSpec, items: AnySet) -> None:
    """Raise `SpecError` if the program answers questions of another form than those of a benchmark of one's own.

    Of every other data set the spec alone says so; `medexam.specs.matrix` checks it.
    """
    program, called = cell.program, cell.dataset.called
    if program.asking.answers_anything:
        return
    tasks = [item for item in items.questions if isinstance(item, Task)]
    if tasks and not program.asking.answers_tasks:
        raise SpecError(
            f"program {program.kind} chooses an option, and the questions of {called} are answered in words: set "
            "program.kind to short_answer or quote, or to a module of your own"
        )
    if not tasks and program.asking.answers_tasks:
        raise SpecError(
            f"program {program.kind} answers in words, and the questions of {called} have numbered options: set "
            "program.kind to zero_shot or another program that chooses one"
        )
    if program.asking.asked_groups is not None and (
        unknown := {task.group for task in tasks} - set(program.asking.asked_groups)
    ):
        raise SpecError(
            f"program {program.kind} has no prompt for the group {min(unknown)} of {called}: it has prompts for "
            f"{', '.join(program.asking.asked_groups)}; give the questions one of these groups, or set another "
            "program.kind"
        )
