"""Trials and scores: DSPy's optimizers call the program itself; a state that was asked all validation questions is one.

An optimizer gets a copy of the user's module, or of a program that ships, of a class that differs in its call alone:
there the question is asked as a run asks it, and its prediction and score are kept.
"""

import asyncio
import hashlib
import json
import math
import threading
from collections import defaultdict
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from numbers import Real
from typing import Any, cast

import dspy
from dspy.teleprompt.bootstrap_trace import FailedPrediction
from pydantic_core import to_jsonable_python

from medexam.errors import MedExamError, SpecError
from medexam.experiments.entry.progress import Bars
from medexam.experiments.optimize.meter import Meter
from medexam.experiments.optimize.optimization import Optimization, Trial
from medexam.experiments.optimize.plan import OptimizationPlan
from medexam.experiments.run.scheduler import answer
from medexam.experiments.store.logs import writing
from medexam.experiments.store.run_folder import PREDICTIONS, RunFolder
from medexam.measures.own import Metric, load_metric
from medexam.model_identity import Answerer
from medexam.predictions import Prediction, Status
from medexam.programs import AskingProgram, save_program
from medexam.programs.fields import AskedText
from medexam.programs.loading import PROGRAM, demonstrations
from medexam.programs.own import OwnProgram
from medexam.questions import Gold, Question, Scoring

MOST_FAULTS = 10
"""Questions in a row whose code raised, after which the program is taken for broken; as many as DSPy allows."""
SCORE, NAME = "_medexam_score", "medexam_trial"
"""Attribute of a program's output that holds what it is worth; and the setting of DSPy's context with name and number
of the trials that begin there, where None is the next number."""


class Scored(dspy.Prediction):
    """What an answer is worth, `score`, and what is to be said of it, `feedback`.

    It counts as true for a right answer alone: DSPy's bootstrapping shows what counts as true.
    """

    def __init__(self, score: float, feedback: str, *, right: bool = False) -> None:
        super().__init__(score=score, feedback=feedback)
        self._right = right

    def __bool__(self) -> bool:
        return self._right


def score_output(_example: dspy.Example, prediction: Any, *_: Any) -> Scored:
    """Return what a program's output is worth, as DSPy's optimizers ask for it."""
    scored = vars(prediction).get(SCORE) if isinstance(prediction, dspy.Prediction) else None
    return scored if scored is not None else Scored(0.0, "The reply has no answer in the format that is asked for.")


def score_answer(
    name: str, own: Metric | None, question: Question, gold: Gold, prediction: Prediction, penalty: float
) -> Scored:
    """Score an answer by the metric of this name or the user's own, which may fail; a wrong one costs `penalty`."""
    answer, right = prediction.answer, gold.accepts(prediction.answer)
    if own is not None and prediction.status is not Status.FAILED:
        try:
            output = own(question, gold, prediction)
            fields = output if isinstance(output, Mapping | dspy.Prediction) else {"score": output}
            score, feedback = fields["score"], fields.get("feedback")
        except Exception as error:
            message = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise SpecError(f"optimizer.metric failed on question {question.key}: {message}") from error
        if not isinstance(score, Real):
            raise SpecError(f"optimizer.metric returned {score!r} for question {question.key}, which is no number")
        return Scored(float(score), str(feedback or ""), right=right)
    options = {option.number: option.text for option in question.options}
    solution = f"The right answer is {gold.number}: {options[gold.number]}"
    mistake = "gave no answer in the format that is asked for" if answer is None else f"answered {answer}"
    score = float(right)
    if name == "log_probability":
        shares = prediction.option_probabilities or {}
        score = math.log(max(sum(share for number, share in shares.items() if gold.accepts(number)), 1e-12))
    elif name == "exam_score" and answer is not None and not right:
        score = -penalty
    return Scored(score, f"Right. {solution}" if right else f"Wrong: the reply {mistake}. {solution}", right=right)


class Trials:
    """The programs that optimizers try, called from their threads."""

    def __init__(
        self, plan: OptimizationPlan, optimization: Optimization, answerer: Answerer, meter: Meter, bars: Bars
    ) -> None:
        """Keep what is tried in `optimization`; `answerer` is the model that was admitted."""
        self._plan, self._optimization, self._meter, self._bars = plan, optimization, meter, bars
        spec = optimization.optimizer
        total = (spec.rounds if spec.kind == "copro" else 1) * optimization.candidates * optimization.validation
        self._bar = bars.add_task(f"{spec.kind} {optimization.cell.program.label}", total=total, note="")
        self._planned = replace(plan.validation, answerers={None: answerer})
        self._own = load_metric(optimization.optimizer.metric) if ":" in optimization.optimizer.metric else None
        self._lock = threading.Lock()
        self._answers: defaultdict[str, dict[str, tuple[Prediction, float]]] = defaultdict(dict)
        """Digest of a program -> key of a validation question -> its answer and score."""
        self._faults = 0
        self._questions: dict[str, tuple[Question, Gold]] = {}
        validation: Any = plan.validation.question_set
        self.train = [self._example(one, plan.train.golds[one.key]) for one in plan.train.questions]
        self.validation = [self._example(one, validation.golds[one.key]) for one in validation.questions]
        self._validation = {one.key for one in validation.questions}
        self.student = self.watch(plan.program.stated.deepcopy())
        """The program as it is written, for optimizers."""
        self._as_written = _digest(self._program(self.student))

    def _example(self, question: Question, gold: Gold) -> dspy.Example:
        program = self._plan.program
        fields = {"question": AskedText(question.printed, question)}
        if isinstance(program, OwnProgram):
            fields = program.inputs_of(question)
        self._questions[_key(fields)] = question, gold
        return dspy.Example(**fields, answer=gold.number).with_inputs(*fields)

    def watch(self, module: dspy.Module) -> Any:
        """Return a module whose calls are kept, as its copies' are; its class reads as before."""
        kind: Any = type(module)

        def call(student: dspy.Module, *args: Any, **inputs: Any) -> Any:
            entry = None if args else self._questions.get(_key(inputs))
            return kind.__call__(student, *args, **inputs) if entry is None else self._ask(student, kind, entry)

        names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
        module.__class__ = type(kind.__name__, (kind,), {**names, "__call__": call})
        return module

    def try_program(self, name: str, module: dspy.Module) -> None:
        """Have a program answer the validation questions, unless it did."""
        if _digest(self._program(module)) not in {trial.digest for trial in self._optimization.trials}:
            with dspy.context(**{NAME: (name, None)}):
                dspy.Evaluate(devset=self.validation, metric=score_output)(module)

    def _program(self, module: Any) -> AskingProgram:
        if not isinstance(self._plan.program, OwnProgram):
            return cast("AskingProgram", module)
        program = copy(self._plan.program)
        program.module = copy(module)
        # DSPy takes no predictors of a part that an optimizer has marked.
        vars(program.module)["_compiled"] = False
        return program

    def _ask(self, student: Any, kind: Any, entry: tuple[Question, Gold]) -> Any:
        """Ask a question as a run does; return what the module returned, with its score."""
        (question, gold), outputs = entry, []
        program: Any = copy(self._plan.program)

        def call(**fields: Any) -> Any:
            outputs.append(output := kind.__call__(student, **fields))
            if "forward" in vars(student):
                # GEPA replaces `forward` to trace each call for its reflection: it returns output and trace.
                output = output[0]
            return {"answer": None} if isinstance(output, FailedPrediction) else output

        async def call_shipped(question: Question) -> Any:
            return await asyncio.to_thread(call, question=question)

        if isinstance(program, OwnProgram):
            call.__module__ = kind.__module__
            program.module = cast("Any", call)
        else:
            vars(program)["aforward"] = call_shipped
        try:
            prediction, error, _ = asyncio.run(answer(replace(self._planned, program=program), question))
            self._bars.advance(self._bar)
            penalty = (self._planned.cell.dataset.scoring or Scoring()).penalty
            scored = score_answer(self._optimization.optimizer.metric, self._own, question, gold, prediction, penalty)
            self._keep(student, prediction, scored.score)
        except MedExamError as fault:
            raise self._meter.stop(str(fault), "failed", fault) from fault
        self._faults = self._faults + 1 if prediction.status is Status.FAILED else 0
        if self._faults >= MOST_FAULTS:
            raise self._meter.stop(f"{MOST_FAULTS} questions in a row failed ({error})", "failed")
        if prediction.status is Status.FAILED and error is not None:
            raise error
        output = outputs[0] if outputs else None
        traced = output[0] if isinstance(output, tuple) else output
        if not isinstance(traced, dspy.Prediction):
            if isinstance(output, tuple):
                return output
            output = traced = dspy.Prediction(answer=prediction.answer)
        setattr(traced, SCORE, scored)
        return output

    def _keep(self, student: Any, prediction: Prediction, score: float) -> None:
        """Keep an answer to a validation question, and the trial that the last one of them completes."""
        if prediction.question not in self._validation:
            return
        program = self._program(student)
        digest = _digest(program)
        with self._lock:
            trials, answers = self._optimization.trials, self._answers[digest]
            answers[prediction.question] = prediction, score
            name, number = ("as written", 0) if digest == self._as_written else dspy.settings.get(NAME)
            earlier = next((trial for trial in trials if trial.digest == digest), None)
            if earlier is not None and number is not None and number < earlier.number:
                # Two candidates of a random search are equal: the first of them gives its name.
                first = replace(earlier, name=name, number=number)
                self._optimization.trials = tuple(first if trial is earlier else trial for trial in trials)
            if earlier is not None or len(answers) < len(self._validation):
                return
            predictions = [answers[question.key][0] for question in self._plan.validation.question_set.questions]
            golds: Any = self._plan.validation.question_set.golds
            trial = Trial(
                number=max((trial.number for trial in trials), default=0) + 1 if number is None else number,
                name=name,
                digest=digest,
                demos=program.nearest.k if program.nearest else sum(1 for _ in demonstrations(program)),
                n=len(predictions),
                right=sum(golds[one.question].accepts(one.answer) for one in predictions),
                unanswered=sum(one.answer is None for one in predictions),
                score=sum(answers[one.question][1] for one in predictions) / len(predictions),
                calls=sum(len(one.calls) for one in predictions),
            )
            self._write(program, predictions, digest)
            self._optimization.trials = (*trials, trial)
            self._optimization.keep(self._meter)
        self._bars.say(f"trial {trial.number}, {trial.name}: {trial.right} of {trial.n} right")
        self._bars.update(self._bar, note=f"{self._optimization.calls:,} calls, {self._optimization.tokens:,} tokens")

    def _write(self, program: AskingProgram, predictions: list[Prediction], digest: str) -> None:
        cell, folder = self._optimization.cell, RunFolder(self._optimization.work.programs / digest)
        path = folder.path / PROGRAM
        folder.create()
        # Of a session that was interrupted meanwhile.
        (folder.path / PREDICTIONS).unlink(missing_ok=True)
        with folder.appending() as log:
            for prediction in predictions:
                log.append(prediction.model_copy(update={"spec_digest": digest}))
            log.flush()
        with writing(path):
            save_program(program, path, cell.program, cell.dataset.language)


def _key(fields: Mapping[str, Any]) -> str:
    return getattr(fields.get("question"), "key", None) or repr(sorted(fields.items()))


def _digest(program: AskingProgram) -> str:
    """Compute twelve hexadecimal digits over the instructions and demonstrations of a program."""
    words = {name: predictor.signature.instructions for name, predictor in program.named_predictors()}
    demos = [] if program.nearest else [[name, to_jsonable_python(demo)] for name, demo in demonstrations(program)]
    text = json.dumps([words, demos, bool(program.nearest)], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
