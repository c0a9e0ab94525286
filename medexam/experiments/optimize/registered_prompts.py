"""The words of an optimization's best program in MLflow's prompt registry: one prompt a predictor, a version a change.

A prompt is the whole conversation as the model reads it, with `{{question}}` where the question stands, `{{passages}}`
before it where those are looked up, and without demonstrations where each question has its own. A version is known by
the digest of its text and of the program's demonstrations, so sending the same words again makes none.
"""

import hashlib
import json
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dspy

from medexam.experiments.optimize.optimization import Optimization
from medexam.experiments.store.work_folder import name_part
from medexam.programs import Call, ExamProgram, ProgramContext, build_program
from medexam.programs.loading import PROGRAM, predictor_states, read_state
from medexam.questions import Discipline, Exam, Option, Question
from medexam.retrievers.base import Hit, Passage
from medexam.signatures import render_question
from medexam.tasks import Task

Messages = list[dict[str, str]]
LINKED = "mlflow.linkedPrompts"
"""The tag in which a run lists its prompts, as MLflow's own `link_prompt_version_to_run` writes it; that call asks the
store that the process has set, whatever its client was given."""
_EXPERIMENTS = "_mlflow_experiment_ids"
"""The tag in which a prompt lists its experiments."""
_LENGTH = 100_000
"""MLflow's limit for a prompt, in characters of JSON."""
_NO_REGISTRY = ("ENDPOINT_NOT_FOUND", "FEATURE_DISABLED", "NOT_IMPLEMENTED")
_log = logging.getLogger(__name__)


def register_prompts(client: Any, optimization: Optimization, run_id: str, experiment_id: str) -> list[str]:
    """Register the best program's prompts and link them to the run. Return their `name/version`.

    Nothing if there is no best program or the store has no prompt registry.
    """
    from mlflow.exceptions import MlflowException

    if optimization.best is None or not (optimization.folder.path / PROGRAM).exists():
        return []
    versions = []
    try:
        for name, messages in prompt_templates(optimization).items():
            versions.append((name, _version(client, optimization, name, messages, run_id)))
            _link_to_experiment(client, name, experiment_id)
    except MlflowException as error:
        if error.error_code not in _NO_REGISTRY:
            raise
        _log.debug("the store has no prompt registry: %s", error)
        return []
    linked = json.dumps([{"name": name, "version": version} for name, version in versions])
    client.set_tag(run_id, LINKED, linked)
    return [f"{name}/{version}" for name, version in versions]


def prompt_templates(optimization: Optimization) -> dict[str, Messages]:
    """Build the messages of each prompt by name; a single predictor's prompt is named after the program's kind."""
    cell = optimization.cell
    spec = cell.program.model_copy(update={"load": optimization.folder.path / PROGRAM})
    context = ProgramContext(finder=_Placeholder(), nearest=_NoDemonstrations)
    program = build_program(spec, cell.dataset.language, context)
    stem = f"{cell.name}-{name_part(cell.program.kind.rpartition(':')[2])}-{cell.dataset.language}"
    predictors = {id(predictor): name.rsplit(".", 1)[-1] for name, predictor in program.named_predictors()}
    if not isinstance(program, ExamProgram):
        return {
            f"{stem}-{registered_name(name)}": _module_prompt(program, predictor)
            for name, predictor in program.named_predictors()
        }
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


def _version(client: Any, optimization: Optimization, name: str, messages: Messages, run_id: str) -> str:
    """Find the version that holds these messages, or make it if there is none."""
    state = read_state(optimization.folder.path)
    parts = predictor_states(state, of_module=optimization.cell.program.module_adapter is not None)
    demos = {name: parts[name]["demos"] for name in sorted(parts)}
    text = json.dumps([messages, demos], ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    if client.search_prompts(filter_string=f"name = '{name}'"):
        for version in client.search_prompt_versions(name):
            if version.tags.get("medexam.prompt_digest") == digest:
                return str(version.version)
    if len(json.dumps(messages)) > _LENGTH:
        text = f"Longer than a prompt may be in MLflow; see {PROGRAM} of run {run_id}."
        messages = [{"role": "system", "content": text}]
    best, cell = optimization.best, optimization.cell
    assert best is not None  # noqa: S101 - the caller has looked
    prompt_version = client.register_prompt(
        name,
        messages,
        commit_message=f"{optimization.optimizer.kind}, trial {best.number} ({best.name})",
        tags={
            "medexam.prompt_digest": digest,
            "medexam.program_digest": best.digest,
            "medexam.optimization": optimization.folder.name,
            "medexam.model": cell.model.label,
            "mlflow_run_id": run_id,
        },
    )
    return str(prompt_version.version)


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


def _with_variables(message: dict[str, str]) -> dict[str, str]:
    return {**message, "content": message["content"].replace(render_question(_QUESTION), _QUESTION.stem)}


def _calls(program: ExamProgram) -> Iterator[Call]:
    steps = program.steps(_QUESTION)
    yield next(steps)
    for _ in range(program.calls_for(_QUESTION) - 1):
        yield steps.send(dspy.Prediction(rationale=_RATIONALE, generation=None))
    steps.close()


@dataclass(frozen=True)
class _NoDemonstrations:
    """Stands where each question gets demonstrations of its own."""

    pool: Sequence[dspy.Example]
    k: int
    encoder: str

    def find(self, question: Question) -> list[dspy.Example]:  # noqa: ARG002
        """Return none: they belong to a question, not to the prompt."""
        return []


class _Placeholder:
    """Stands where a program's passages come from."""

    def find(self, question: Question | Task) -> list[Hit]:  # noqa: ARG002
        """Return one mark for all passages."""
        return [Hit(Passage("passages", "", "{{passages}}", ""), 0.0, 1)]

    def find_per_option(self, question: Question) -> dict[int, list[Hit]]:
        """Return the same mark for each option."""
        return {option.number: self.find(question) for option in question.options}
