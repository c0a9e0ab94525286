"""The code of a logged model: an optimized program behind MLflow's own interface. MLflow runs this file by its path.

`mlflow.dspy.log_model` is not used: in both of its modes it writes the module with cloudpickle, which ties a model to
the versions that wrote it and runs whatever a file says when it is read. Here the model is this file and two JSON
files: the cell, which says what program on which engine, and `program.json`, its instructions and demonstrations.

It knows nothing of scores: it asks questions that nobody has a gold answer to.
"""

import asyncio
import hashlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dspy
import pandas as pd
from dspy.utils.exceptions import ContextWindowExceededError
from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel, PythonModelContext

from medexam.experiments.plan.nearest_demonstrations import NearestDemonstrations
from medexam.experiments.plan.passage_lookup import Retrieval, plan_retrieval
from medexam.experiments.run.language_model import build_lm
from medexam.files import cache_dir
from medexam.predictions import Prediction
from medexam.programs import ProgramContext, WithNearest, build_failure, build_prediction, build_program
from medexam.questions import Discipline, Exam, Option, Question
from medexam.retrievers.building import plan_retriever
from medexam.serve import Engine, build_engine
from medexam.serve.network.event_loop import background_loop
from medexam.specs import CellSpec


class ServedProgram(PythonModel):
    """Answers questions given as rows: `stem`, `options` in the order of their numbers, and maybe `discipline`.

    Each row gives `answer` (the number of an option from 1, None where none was chosen), `reply` and `rationale`.
    Rows are asked together, as many at a time as the engine takes. No shipped prompt shows the discipline.
    """

    _engine: Engine
    _program: dspy.Module

    def load_context(self, context: PythonModelContext) -> None:
        """Build the program and open the engine that the cell names."""
        files = {name: Path(path) for name, path in context.artifacts.items()}
        cell = CellSpec.model_validate_json(files["cell"].read_text(encoding="utf-8"))
        paths = {"load": files["program"], **{name: files[name] for name in ("prompt", "examples") if name in files}}
        spec = cell.program.model_copy(update=paths)
        self._cell = cell
        self._retrieval: Retrieval | None = None
        if (settings := spec.retrieval) is not None:
            planned = plan_retriever(settings.retriever)
            self._retrieval = plan_retrieval(settings, planned, cache_dir(), cell.dataset.language)
        self._looking_up = threading.Lock()
        self._program = build_program(
            spec,
            cell.dataset.language,
            ProgramContext(cell.model.max_tokens, self._retrieval, nearest=NearestDemonstrations),
        )
        self._engine = background_loop().run(build_engine(cell.model, spec.engine_needs))

    def predict(
        self,
        context: PythonModelContext,  # noqa: ARG002 - MLflow passes it
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,  # noqa: ARG002 - MLflow passes it
    ) -> list[dict[str, Any]]:
        """Answer each row, in their order; raises where a row is no question or the model does not answer."""
        questions = [self._question(number, row) for number, row in enumerate(model_input.to_dict(orient="records"))]
        with self._looking_up:
            if self._retrieval is not None:
                self._retrieval.fill(questions)
            if isinstance(self._program, WithNearest) and isinstance(self._program.finder, NearestDemonstrations):
                self._program.finder.fill(questions)
        predictions = background_loop().run(self._ask(questions))
        return [
            {"answer": prediction.answer, "reply": prediction.reply, "rationale": prediction.rationale}
            for prediction in predictions
        ]

    def _question(self, number: int, row: Mapping[str, Any]) -> Question:
        texts = [str(text) for text in row["options"]]
        stem, discipline = str(row["stem"]), row.get("discipline")
        digest = hashlib.sha256("\n".join([stem, *texts]).encode()).hexdigest()[:12]
        try:
            # pandas fills a column that a row leaves out with a number that is none.
            exam_discipline = discipline if isinstance(discipline, str) and discipline else Discipline.MEDICINE
            return Question(
                key=f"served/{digest}",
                exam=Exam(name="served", year=0, discipline=exam_discipline),
                number=1,
                language=self._cell.dataset.language,
                stem=stem,
                options=tuple(Option(number=place, text=text) for place, text in enumerate(texts, start=1)),
            )
        except ValueError as error:
            detail = " ".join(str(error).split())
            raise MlflowException.invalid_parameter_value(f"row {number} is not a question: {detail}") from None

    async def _ask(self, questions: Sequence[Question]) -> list[Prediction]:
        room = asyncio.Semaphore(self._engine.concurrency)

        async def ask(question: Question) -> Prediction:
            async with room:
                return await self._answer(question)

        with dspy.context(lm=build_lm(self._cell.model, self._engine), disable_history=True):
            return await asyncio.gather(*(ask(question) for question in questions))

    async def _answer(self, question: Question) -> Prediction:
        program = self._cell.program.label
        try:
            outcome = await self._program.acall(question=question)
        except ContextWindowExceededError as error:
            return build_failure(question, error, program=program, spec_digest="")
        return build_prediction(question, outcome, program=program, spec_digest="", latency_s=0.0)


set_model(ServedProgram())
