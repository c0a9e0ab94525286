"""The best program of an optimization as an MLflow model: code, two JSON files, a signature, and no pickle.

It is written and sent through a client that names its store, so no global setting of MLflow's is touched.
"""

import json
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from medexam.errors import SpecError
from medexam.experiments.optimize.optimization import Optimization
from medexam.plugins import __version__
from medexam.programs.loading import PROGRAM, read_state
from medexam.signatures import load_words
from medexam.signatures.word_files import WORDS
from medexam.specs import CellSpec

CODE = Path(__file__).with_name("served_program.py")
EXAMPLE = {
    "stem": "Which vitamin is lacking in scurvy?",
    "options": ["Vitamin A.", "Vitamin B12.", "Vitamin C.", "Vitamin D."],
    "discipline": "medicine",
}
_SUFFIXES = {"prompt": "", "examples": "_examples"}
"""Fields of a program that name a shipped set of words or a file of the user's -> how a shipped one's name ends."""
_log = logging.getLogger(__name__)


def log_best_program(client: Any, optimization: Optimization, run_id: str, experiment_id: str) -> str | None:
    """Log the best program as a model of the run. Return its id, which is the old one where it is there already.

    None if there is none, if it cannot answer a new question, or if the store keeps no models.
    """
    best, cell = optimization.best, optimization.cell
    path = optimization.folder.path / PROGRAM
    if best is None or not path.exists():
        return None
    if (reason := unservable(cell)) is not None:
        _log.debug("no model of %s: %s", optimization.folder.name, reason)
        return None
    from mlflow.entities import LoggedModelOutput
    from mlflow.exceptions import MlflowException

    tags = {
        "medexam.optimization": optimization.folder.name,
        "medexam.program_digest": best.digest,
        "medexam.trial": str(best.number),
        "medexam.version": __version__,
        "mlflow.note.content": f"The best program of {optimization.title}: {best.name} (trial {best.number}).",
    }
    try:
        filter_string = f"source_run_id = '{run_id}' AND tags.`medexam.program_digest` = '{best.digest}'"
        for logged_model in client.search_logged_models([experiment_id], filter_string=filter_string):
            if logged_model.status == "READY":
                return str(logged_model.model_id)
        model = client.create_logged_model(
            experiment_id,
            # MLflow allows neither slashes nor colons.
            name=f"{cell.name}-{cell.program.label}-{cell.dataset.language}",
            source_run_id=run_id,
            tags=tags,
            params={
                "program": cell.program.label,
                "model": cell.model.label,
                "engine": cell.model.engine,
                "dataset": f"{cell.dataset.name}-{cell.dataset.language}",
                "optimizer": optimization.optimizer.kind,
                "demos": str(best.demos),
                "digest": best.digest,
            },
            model_type="exam program",
        )
    except MlflowException as error:
        if error.error_code not in ("ENDPOINT_NOT_FOUND", "NOT_IMPLEMENTED"):
            raise
        _log.debug("the store keeps no models: %s", error)
        return None
    try:
        with tempfile.TemporaryDirectory() as folder, _quietly():
            _write_model(cell, path, Path(folder) / "model", model, run_id)
            client.log_model_artifacts(model.model_id, str(Path(folder) / "model"))
        client.log_outputs(run_id, models=[LoggedModelOutput(model.model_id, step=0)])
    except BaseException:
        with suppress(MlflowException):
            client.finalize_logged_model(model.model_id, "FAILED")
        raise
    client.finalize_logged_model(model.model_id, "READY")
    return str(model.model_id)


def unservable(cell: CellSpec) -> str | None:
    """Explain why the program cannot answer a question that is in no data set; None where it can."""
    retrieval, words = cell.program.retrieval, cell.program.words
    if retrieval is not None and retrieval.query_language not in (None, cell.dataset.language):
        return "it looks up each question in another language, and a new question has no translation"
    try:
        if words is not None:
            load_words(words, cell.dataset.language)
    except SpecError as error:
        return str(error)
    return None


def _own_files(cell: CellSpec) -> dict[str, str]:
    """Return the files of the user's that the program reads its words from, by the field that names them."""
    words = cell.program.words
    sources = {"prompt": words.prompt, "examples": words.examples} if words is not None else {}
    return {
        name: str(value)
        for name, value in sources.items()
        if value is not None and not (WORDS / f"{value}{_SUFFIXES[name]}.yaml").is_file()
    }


def _write_model(cell: CellSpec, program: Path, target: Path, model: Any, run_id: str) -> None:
    import mlflow.pyfunc
    import pandas as pd
    from mlflow.models import Model, ModelSignature
    from mlflow.types.schema import Array, ColSpec, DataType, Schema

    signature = ModelSignature(
        inputs=Schema(
            [
                ColSpec(DataType.string, "stem"),
                ColSpec(Array(DataType.string), "options"),
                ColSpec(DataType.string, "discipline", required=False),
            ]
        ),
        outputs=Schema(
            [
                ColSpec(DataType.long, "answer", required=False),
                ColSpec(DataType.string, "reply", required=False),
                ColSpec(DataType.string, "rationale", required=False),
            ]
        ),
    )
    document = target.parent / "cell.json"
    document.write_text(json.dumps(cell.model_dump(mode="json"), ensure_ascii=False, indent=2), encoding="utf-8")
    files = {"cell": str(document), "program": str(program), **_own_files(cell)}
    looks_up = cell.program.retrieval is not None or "nearest" in read_state(program)["metadata"]["medexam"]
    extra_needs = {"local": cell.model.loads_weights, "retrieval": looks_up}
    extras = [extra for extra, needed in extra_needs.items() if needed]
    package = f"medexam[{','.join(extras)}]" if extras else "medexam"
    card = Model(
        artifact_path=model.artifact_location, model_uuid=model.model_id, model_id=model.model_id, run_id=run_id
    )
    mlflow.pyfunc.save_model(
        path=str(target),
        python_model=str(CODE),
        artifacts=files,
        signature=signature,
        input_example=pd.DataFrame([EXAMPLE]),
        pip_requirements=[f"{package}=={__version__}"],
        mlflow_model=card,
    )


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence MLflow: it draws a bar for each file that it copies, and warns of its use of pandas and type hints."""
    name = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"
    previous = os.environ.get(name)
    os.environ[name] = "false"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if previous is None:
            del os.environ[name]
        else:
            os.environ[name] = previous
