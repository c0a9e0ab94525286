"""What cells read: data sets, corpora and models' identities, each looked at once for all cells of a plan."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

from medexam.datasets import find_files
from medexam.datasets.pictures.showing import show_pictures
from medexam.errors import CommitUnknownError, CorpusUnreachableError, EngineError, MedExamError, SpecError
from medexam.experiments.plan.context_lookup import pin_reader, reader_identity
from medexam.experiments.plan.fit import check_answerable
from medexam.experiments.plan.passage_lookup import Retrieval, plan_retrieval, plan_without_corpus
from medexam.experiments.plan.prompt_samples import sample_prompts
from medexam.experiments.plan.words import asked_words
from medexam.files import cache_dir
from medexam.gc_pause import gc_seldom
from medexam.measures import find_benchmark
from medexam.measures.own import load_metric
from medexam.plugins import hash_source
from medexam.questions import AnySet, Question
from medexam.retrievers.building import PlannedRetriever, plan_retriever
from medexam.serve.naming import known_model
from medexam.specs import CellSpec, DatasetSpec, ModelSpec, RetrieverSpec
from medexam.specs.identity import build_identity, digest
from medexam.specs.names import OWN_METRICS
from medexam.specs.programs.needs import ReaderSettings

_UNREACHABLE = (CorpusUnreachableError, CommitUnknownError)


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
        self._question_sets: dict[DatasetSpec, AnySet] = {}
        self._picture_sets: dict[tuple[DatasetSpec, int], tuple[AnySet, dict[str, Any]]] = {}
        self._retrievers: dict[RetrieverSpec, PlannedRetriever | MedExamError] = {}
        self._models: dict[ModelSpec, dict[str, Any]] = {}
        self._prompts: dict[str, list[str | None] | None] = {}

    def prepare(self, cell: CellSpec, data: DatasetSpec | None = None, keys: Collection[str] | None = None) -> Prepared:
        """Return the cell with its questions and everything that its answers depend on.

        `data` None: the questions that the cell selects. `keys`: those of the questions whose pictures must be here, if
        they are shown; None: all of them. Raises `SpecError`, `DatasetError` and `EngineError`.
        """
        self._check_metrics(cell)
        question_set = self._question_set(data or cell.dataset)
        if cell.dataset.is_own:
            check_answerable(cell, question_set)
        question_set, pictures = self._with_pictures(cell, question_set, data or cell.dataset, keys)
        reader = self._reader(cell)
        retrieval, retriever_identity, translation_set = None, None, None
        if (settings := cell.program.retrieval) is not None:
            translation_set = self._translations(cell)
            translations = partial(_by_key, translation_set) if translation_set else None
            try:
                planned = self._retriever(settings.retriever)
            except _UNREACHABLE as error:
                if not self._only_look:
                    raise
                retrieval = plan_without_corpus(settings, error, translations)
                retriever_identity = settings.retriever.model_dump(mode="json")
            else:
                retrieval = plan_retrieval(settings, planned, cache_dir(), cell.dataset.language, translations)
                retriever_identity = planned.identity
        cell_identity = build_identity(
            cell,
            fingerprint=question_set.fingerprint,
            words=asked_words(cell.program, cell.dataset.language),
            retriever=retriever_identity,
            translations=translation_set.fingerprint if translation_set else None,
            model=self._model(cell.model) if cell.program.asks_model else None,
            models={name: self._model(model) for name, model in cell.asked_models.items()},
            reader=reader_identity(reader) if reader is not None else None,
            pictures=pictures,
            prompts=self._prompts_of(cell) if cell.program.asks_model else None,
            dspy=None if cell.program.module_adapter is None else version("dspy"),
        )
        return Prepared(cell, question_set, cell_identity, retrieval, reader)

    def _with_pictures(
        self, cell: CellSpec, items: AnySet, spec: DatasetSpec, keys: Collection[str] | None
    ) -> tuple[AnySet, dict[str, Any] | None]:
        """Return the questions with their pictures if they are shown, and what the identity says of these."""
        longest_side = cell.program.pictures
        if longest_side is None:
            return items, None
        if spec.is_own:
            raise SpecError(
                f"program.images: code of your own reads the questions of {spec.called}, without "
                "pictures: set it to hidden"
            )
        if (spec, longest_side) not in self._picture_sets:
            self._picture_sets[spec, longest_side] = show_pictures(items, spec, longest_side, keys)
        return self._picture_sets[spec, longest_side]

    def _check_metrics(self, cell: CellSpec) -> None:
        """Raise `SpecError` before anything is asked if a metric cannot be run; a look at a plan imports none."""
        for name in cell.metrics:
            if self._only_look:
                hash_source(name, OWN_METRICS)
            else:
                load_metric(name)

    def _reader(self, cell: CellSpec) -> ReaderSettings | None:
        """Return the cell's local model with its content as the revision; None where it has none."""
        reader = cell.program.local_reader
        try:
            return None if reader is None else pin_reader(reader)
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

    def _model(self, spec: ModelSpec) -> dict[str, Any]:
        if spec not in self._models:
            try:
                self._models[spec] = known_model(spec)
            except EngineError:
                if not self._only_look:
                    raise
                self._models[spec] = {"engine": spec.engine}
        return self._models[spec]

    def _retriever(self, spec: RetrieverSpec) -> PlannedRetriever:
        retriever = self._retrievers.get(spec)
        if retriever is None:
            try:
                retriever = plan_retriever(spec)
            except _UNREACHABLE as error:
                retriever = error
            self._retrievers[spec] = retriever
        if isinstance(retriever, MedExamError):
            raise retriever
        return retriever

    def _question_set(self, spec: DatasetSpec) -> AnySet:
        if spec not in self._question_sets:
            with gc_seldom():
                self._question_sets[spec] = find_benchmark(spec).load(spec)
            find_benchmark(spec).check()
        return self._question_sets[spec]

    def _translations(self, cell: CellSpec) -> AnySet | None:
        """Load the questions in the language of the queries; None where that is their own."""
        retrieval = cell.program.retrieval
        language = None if retrieval is None else retrieval.query_language
        if language is None or language == cell.dataset.language:
            return None
        if cell.dataset.kind is not None:
            raise SpecError("program.query_language: questions of your own have one language: leave it out")
        if cell.dataset.alter is not None:
            raise SpecError("program.query_language: altered questions have no translation to look up: leave it out")
        dataset = cell.dataset
        # A path may name the file of one language, beside which the other lies, or beside whose folder.
        places = [] if dataset.path is None else [dataset.path, *list(dataset.path.expanduser().parents)[:2]]
        path = next((place for place in places if place.is_dir() and find_files(dataset.name, language, place)), None)
        return self._question_set(
            DatasetSpec(name=dataset.name, language=language, path=path, as_published=dataset.as_published)
        )


def _by_key(question_set: AnySet) -> dict[str, Question]:
    return {question.key: question for question in question_set.questions}
