"""The words of programs in MLflow's prompt registry: one prompt a predictor, a version a change, linked to its runs.

A prompt is the whole conversation as the model reads it, with `{{question}}` in the question's place, `{{passages}}`
before it if passages are looked up, and without demonstrations if each question has its own. A version is known by
the digest of its text, so sending the same words again makes none.
"""

import hashlib
import json
import logging
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

import dspy

from medexam.errors import MedExamError
from medexam.experiments.plan.planner import plan_stored
from medexam.experiments.store.stored_run import AnyRun
from medexam.model_calls import Generation
from medexam.programs import ProgramContext, build_program
from medexam.programs.base import Call, ExamProgram
from medexam.programs.combining.reordering import Reordered
from medexam.programs.combining.voting import Voting
from medexam.programs.own import OwnProgram
from medexam.programs.steps.asides import BehindField
from medexam.programs.steps.flow import StepProgram
from medexam.questions import Discipline, Exam, Option, Question, Task
from medexam.retrievers.base import Hit, Passage
from medexam.signatures import render_question
from medexam.specs import CellSpec

Messages = list[dict[str, str]]
LINKED = "mlflow.linkedPrompts"
"""The tag in which a run lists its prompts, as MLflow's own `link_prompt_version_to_run` writes it; that call asks the
store that the process has set, whatever its client was given."""
_EXPERIMENTS = "_mlflow_experiment_ids"
"""The tag in which a prompt lists its experiments."""
_LENGTH = 100_000
"""MLflow's limit for a prompt, in characters of JSON."""
_NO_REGISTRY = ("ENDPOINT_NOT_FOUND", "FEATURE_DISABLED", "NOT_IMPLEMENTED", "PERMISSION_DENIED")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PromptVersion:
    """The words of one predictor, as one version of a prompt."""

    messages: Messages
    change: str
    """What the registry says of this version, such as the trial that wrote it."""
    beside: str = ""
    """What else makes it another version, such as demonstrations that the messages do not show."""
    elsewhere: str = "spec.json"
    """The file of the run that holds words too long for a prompt of MLflow's."""
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The first digits of the SHA-256 of all that makes it this version."""
        text = f"[{json.dumps(self.messages, ensure_ascii=False)}, {self.beside or '{}'}]"
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def register(client: Any, prompts: Mapping[str, PromptVersion], run_id: str, experiment_id: str) -> list[str]:
    """Register prompts by name and link them to MLflow's run. Return their `name/version`.

    Nothing if there are none, or if the store has no prompt registry.
    """
    from mlflow.exceptions import MlflowException

    versions = []
    try:
        for name, prompt in prompts.items():
            versions.append((name, _version(client, name, prompt, run_id)))
            _link_to_experiment(client, name, experiment_id)
    except MlflowException as error:
        if error.error_code not in _NO_REGISTRY:
            raise
        _log.debug("the store has no prompt registry: %s", error)
        return []
    if versions:
        linked = json.dumps([{"name": name, "version": version} for name, version in versions])
        client.set_tag(run_id, LINKED, linked)
    return [f"{name}/{version}" for name, version in versions]


def collect_prompts(runs: Iterable[AnyRun]) -> dict[int, dict[str, PromptVersion]]:
    """Collect what each run asked with, by the `id` of the run; runs whose words are not known any more have none."""
    prompts_by_run = {}
    for run in runs:
        cell = run.record.cell
        try:
            plan_stored(run.folder.path)
            prompts = program_prompts(cell, cell.program.label)
        except MedExamError as error:
            _log.debug("no prompts of %s: %s", run.record.run_id, error)
            continue
        change = f"{cell.program.label}, {cell.dataset.language}"
        prompts_by_run[id(run)] = {name: PromptVersion(messages, change) for name, messages in prompts.items()}
    return prompts_by_run


def program_prompts(cell: CellSpec, label: str) -> dict[str, Messages]:
    """Build the messages of each prompt of the cell's program by name; `label` says which program it is.

    None of what a step asks in words beside the question, which hold the model's replies.
    """
    unused: Any = _Placeholder()
    context = ProgramContext(finder=unused, search=unused, supports=unused, nearest=_NoDemonstrations)
    program = build_program(cell.program, cell.dataset.language, context)
    return _prompts(program, f"{cell.name}-{registered_name(label)}-{cell.dataset.language}")


def _prompts(program: dspy.Module, stem: str, step: str | None = None) -> dict[str, Messages]:
    """Build the messages of a program, or of what a `step` asks, by its own adapter; their names begin with `stem`."""
    while isinstance(program, (Voting, Reordered)):
        program = program.program
    if isinstance(program, OwnProgram):
        return {
            f"{stem}-{registered_name((step or 'module') + name.removeprefix('module'))}": _module_prompt(
                program, predictor
            )
            for name, predictor in program.named_predictors()
        }
    stem = stem if step is None else f"{stem}-{registered_name(step)}"
    if isinstance(program, StepProgram):
        return {k: v for name, part in program.named_programs() for k, v in _prompts(part, stem, name).items()}
    if not isinstance(program, ExamProgram):
        return {}
    predictors = {id(predictor): name.rsplit(".", 1)[-1] for name, predictor in program.named_predictors()}
    calls = list(_calls(program))
    templates = {}
    for call in calls:
        name = stem if len(calls) == 1 else f"{stem}-{predictors[id(call.predictor)]}"
        demos = call.inputs.get("demos", call.predictor.demos)
        messages = program.adapter.format(call.predictor.signature, demos, call.inputs)
        templates[name] = [_with_variables(message) for message in messages]
    return templates


def registered_name(predictor: str) -> str:
    """Name a predictor as MLflow takes it, which takes no brackets: `module.steps[0]` is `module.steps.0`.

    A name that loses other characters ends in a digest of the whole, since two could otherwise be equal.
    """
    plain_name = re.sub(r"\[(['\"]?)(.*?)\1\]", r".\2", predictor)
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", plain_name)
    return name if name == plain_name else f"{name}-{hashlib.sha256(predictor.encode()).hexdigest()[:6]}"


def _module_prompt(program: dspy.Module, predictor: dspy.Predict) -> Messages:
    """Render what a predictor of the user's own module asks, a variable in place of each input."""
    inputs = {name: f"{{{{{name}}}}}" for name in predictor.signature.input_fields}
    messages: Messages = program.adapter.format(predictor.signature, predictor.demos, inputs)
    return messages


def _version(client: Any, name: str, prompt: PromptVersion, run_id: str) -> str:
    """Find the version that holds these words, or make it if there is none."""
    if client.search_prompts(filter_string=f"name = '{name}'"):
        for version in client.search_prompt_versions(name):
            if version.tags.get("medexam.prompt_digest") == prompt.digest:
                return str(version.version)
    messages = prompt.messages
    if len(json.dumps(messages)) > _LENGTH:
        text = f"Longer than a prompt may be in MLflow; see {prompt.elsewhere} of run {run_id}."
        messages = [{"role": "system", "content": text}]
    tags = {"medexam.prompt_digest": prompt.digest, **prompt.tags, "mlflow_run_id": run_id}
    made = client.register_prompt(name, messages, commit_message=prompt.change, tags=tags)
    return str(made.version)


def _link_to_experiment(client: Any, name: str, experiment_id: str) -> None:
    """List the prompt in its experiment's page, and in that of no other that was not there before.

    MLflow links a new version to the experiment that the process has set, or the default one, in a thread of its own.
    """
    for thread in threading.enumerate():
        if thread.name.startswith("link_prompt_to_experiment"):
            thread.join()
    tag = client.get_prompt(name).tags.get(_EXPERIMENTS, "")
    others = [experiment for experiment in tag.split(",") if experiment not in ("", "0", experiment_id)]
    new_tag = f",{','.join([*others, experiment_id])},"
    if new_tag != tag:
        client.set_prompt_tag(name, _EXPERIMENTS, new_tag)


_QUESTION = Question(
    key="template",
    exam=Exam(name="template", year=0, discipline=Discipline.MEDICINE),
    number=1,
    language="en",
    stem="{{question}}",
    options=(Option(number=1, text="{{first}}"), Option(number=2, text="{{second}}")),
)
_RATIONALE = "{{rationale}}"
_REPLY = Generation(reply="", finish_reason="stop", model="", prompt_tokens=None, completion_tokens=None)


def _with_variables(message: dict[str, str]) -> dict[str, str]:
    return {**message, "content": message["content"].replace(render_question(_QUESTION), _QUESTION.stem)}


def _calls(program: ExamProgram) -> Iterator[Call]:
    """Yield the first call of each predictor."""
    unseen = {id(predictor) for predictor in program.predictors()}
    if isinstance(program, BehindField):
        steps = program.steps_behind(_QUESTION, f"{{{{{program.field}}}}}")
    else:
        steps = program.steps(_QUESTION)
    call = next(steps)
    with closing(steps), suppress(StopIteration):
        while True:
            if id(call.predictor) in unseen:
                unseen.discard(id(call.predictor))
                yield call
            if not unseen:
                return
            reasoning = {name: _RATIONALE for name in call.predictor.signature.output_fields if name == "rationale"}
            call = steps.send(dspy.Prediction(answer=1, reading=None, generation=_REPLY, **reasoning))


@dataclass(frozen=True)
class _NoDemonstrations:
    """Stand-in for demonstrations that each question has of its own."""

    pool: Sequence[dspy.Example]
    k: int
    encoder: str

    def find(self, question: Question) -> list[dspy.Example]:  # noqa: ARG002
        """Return none: they belong to a question, not to the prompt."""
        return []


class _Placeholder:
    """Stand-in for what finds a program's passages."""

    def find(self, question: Question | Task) -> list[Hit]:  # noqa: ARG002
        """Return one mark for all passages."""
        return [Hit(Passage("passages", "", "{{passages}}", ""), 0.0, 1)]

    def find_per_option(self, question: Question) -> dict[int, list[Hit]]:
        """Return the same mark for each option."""
        return {option.number: self.find(question) for option in question.options}
