"""What the cells of a plan need to be installed: looked at before anything is asked, and nothing is imported."""

from collections.abc import Iterator, Sequence
from importlib import util

from medexam.errors import SpecError
from medexam.experiments.plan.cells import AnyCell

_MODULES = {
    "bm25": {"bm25s": "bm25s", "Stemmer": "PyStemmer"},
    "retrieval": {"datasets": "datasets", "faiss": "faiss-cpu", "sentence_transformers": "sentence-transformers"},
    "local": {"torch": "torch", "transformers": "transformers", "accelerate": "accelerate"},
}
"""Extra -> its modules that are imported, and the packages that they come in."""


def check_installed(cells: Sequence[AnyCell]) -> None:
    """Raise `SpecError` if a package is missing that a cell needs to ask its pending questions."""
    for planned in cells:
        for extra in _extras_of(planned):
            missing = [package for module, package in _MODULES[extra].items() if util.find_spec(module) is None]
            if missing:
                raise SpecError(
                    f"{planned.run_id} needs {', '.join(missing)}, so nothing is asked: pip install 'medexam[{extra}]'"
                )


def _extras_of(planned: AnyCell) -> Iterator[str]:
    if planned.asks_model and any(model.loads_weights for model in planned.models):
        yield "local"
    retriever = None if planned.retrieval is None else planned.retrieval.settings.retriever
    if retriever is not None and retriever.uses_words:
        yield "bm25"
    if planned.nearest or (retriever is not None and (retriever.uses_vectors or retriever.rerank is not None)):
        yield "retrieval"
