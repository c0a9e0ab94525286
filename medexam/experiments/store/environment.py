"""What a run really ran on, which models answered, and what it took: tokens, seconds and, with a price, money.

`models.json` has the model that answers, under the print that its predictions carry. No environment variable is read
here, so no key can reach a folder.
"""

import platform
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from pydantic import ValidationError

from medexam.errors import RunFolderError
from medexam.experiments.store.run_folder import PREDICTIONS, RunFolder, RunRecord, WorkFolder
from medexam.frozen_model import FrozenModel
from medexam.kept import keep
from medexam.measures.results import Metrics
from medexam.model_identity import Answerer, ModelIdentity
from medexam.plugins import __version__
from medexam.predictions import Status
from medexam.serve import EngineInfo
from medexam.specs import ModelSpec
from medexam.specs.base import describe_faults

PACKAGES = ("dspy", "litellm", "transformers", "torch", "mlflow", "datasets", "pydantic", "numpy")


def build_environment(
    models: Mapping[str | None, ModelSpec],
    infos: Mapping[str | None, EngineInfo | None],
    before: Mapping[str, Any],
    machine: Mapping[str, Any],
    asked_s: float = 0.0,
    asked: int = 0,
) -> dict[str, Any]:
    """Build `environment.json` of a run, `before` being that of its earlier invocations; empty at the first.

    `models` are the cell's own, as None, and the further ones by name; none of a control. `infos` are what answers as
    each, None where nobody was reached, and `machine` what `describe_environment` says. This invocation asked `asked`
    questions for `asked_s` seconds.
    """

    def describe(name: str | None) -> dict[str, Any]:
        if (info := infos.get(name)) is None:
            return {"engine": None, "prices": None}
        return {"engine": info.model_dump(mode="json", exclude={"identity"}), "prices": list_prices(models[name])}

    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    further = {name: {"name": model.label, **describe(name)} for name, model in models.items() if name}
    return {
        "started_at": before.get("started_at", now),
        "ended_at": now,
        "asked_s": round(before.get("asked_s", 0.0) + asked_s, 3),
        "asked": before.get("asked", 0) + asked,
        **describe(None),
        **machine,
        **({"models": further} if further else {}),
    }


def describe_environment() -> dict[str, Any]:
    """Describe versions and machine as JSON-ready data; a package that is not installed is None.

    The commit is the working directory's, with `+changes` where files differ from it; None outside a repository.
    """
    versions: dict[str, str | None] = dict.fromkeys(PACKAGES)
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    command = ("git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+changes")
    commit = None
    with suppress(OSError, subprocess.SubprocessError):
        commit = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()  # noqa: S603
    return {
        "medexam": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": versions,
        "git_commit": commit,
    }


def list_prices(model: ModelSpec) -> dict[str, float] | None:
    """List US dollars a token, as `prompt_usd` and `completion_usd`, by the spec or litellm's own price list; None
    without.

    In the list only what a provider bills has a price: a model of the `litellm` engine without an endpoint of its own,
    and one of an engine that says so.
    """
    if model.price is not None:
        return dict(zip(("prompt_usd", "completion_usd"), (dollars / 1e6 for dollars in model.price), strict=True))
    if not model.is_billed:
        return None
    try:
        from medexam.serve.engines.litellm_calls import get_litellm

        info = get_litellm().get_model_info(model.name)
    except Exception:  # litellm raises nothing more special for a model that its list lacks
        return None
    prices = (info["input_cost_per_token"], info["output_cost_per_token"])
    if not all(prices):
        return None
    prompt_usd, completion_usd = model.ask_engine("list_prices", info) or prices
    return {"prompt_usd": prompt_usd, "completion_usd": completion_usd}


def compute_costs(metrics: Metrics, environment: Mapping[str, Any]) -> dict[str, Any]:
    """Compute what a run took, JSON-ready: `total`, `per_question` and `per_right` of each thing, None if unknown.

    Tokens and money are those of the scored questions whose tokens the server reported; `counted` is their number,
    there only if the server reported no tokens of other replies. Time is that of all invocations, retries and failures
    included, without starting the engine and without scoring; a question's is the mean of all that were asked.
    `environment` may be empty.
    """

    def cost(total: float | None, size: int | None) -> dict[str, float | None] | None:
        if total is None or not metrics.n:
            return None
        scored_total = total * metrics.n / size if size else total
        per_right = scored_total / metrics.right if metrics.right else None
        return {"total": total, "per_question": scored_total / metrics.n, "per_right": per_right}

    prompts, completions = metrics.prompt_tokens_counted, metrics.completion_tokens_counted
    size = min((count for count in (prompts, completions) if count is not None), default=None)
    thinking = cost(metrics.thinking_tokens or None, completions)
    return {
        "prompt_tokens": cost(metrics.prompt_tokens, prompts),
        "completion_tokens": cost(metrics.completion_tokens, completions),
        **({"thinking_tokens": thinking} if thinking else {}),
        "seconds": cost(environment.get("asked_s") or None, environment.get("asked")),
        "usd": cost(metrics.cost_usd, size),
        **({} if size is None else {"counted": size}),
    }


MODELS = "models.json"


class KnownModel(FrozenModel):
    """One entry of `models.json`."""

    identity: ModelIdentity
    doubts: tuple[dict[str, Any], ...] = ()
    """When another model was seen to answer behind it: `answers` given since it was last seen, each by either of the
    two, and their `differences`."""


class AnswererCount(NamedTuple):
    """How many of a run's answers one model gave."""

    print: str | None
    """None where answers carry none."""
    name: str
    answers: int
    doubtful: int = 0
    """How many of them another model may have given, which answered when the questions were asked."""


def are_mixed(counts: Sequence[AnswererCount]) -> bool:
    """Return whether the answers are, or may be, of more than one model."""
    return len(counts) > 1 or any(count.doubtful for count in counts)


def read_models(folder: WorkFolder, file: str = MODELS) -> dict[str, KnownModel]:
    """Read the model by its print; empty until one is admitted. Raises `RunFolderError` for a damaged file."""
    if not (folder.path / file).exists():
        return {}
    try:
        return {key: KnownModel.model_validate(value) for key, value in folder.read_json(file).items()}
    except ValidationError as error:
        raise RunFolderError(
            f"{folder.path / file} is damaged ({describe_faults(error)}): which model answered is unknown; "
            "restore it, or start another run with --fresh"
        ) from None


def note_doubt(folder: WorkFolder, answerer: Answerer, answers: int, differences: Sequence[str]) -> None:
    """Note that `answers` of this model may be another's, which differs so; the folder must be locked."""
    models = folder.read_json(MODELS)
    models[answerer.print]["doubts"].append({"answers": answers, "differences": list(differences)})
    folder.write_json(MODELS, models)


def admit(folder: WorkFolder, identity: ModelIdentity, *, answers: int, file: str = MODELS) -> Answerer:
    """Let a model answer in a folder that already holds `answers` of them, and return which print its answers carry.

    The folder must be locked, and `file` keeps its model. Raises `RunFolderError` where another model gave those
    answers.
    """
    owner, reason = f"of a model that no {file} names", ""
    for key, entry in (read_models(folder, file) if answers else {}).items():
        if not (differences := entry.identity.differences(identity)):
            return Answerer(key, identity.name)
        owner, reason = f"of {entry.identity.name} (print {key})", f" ({'; '.join(differences)})"
    if answers:
        raise RunFolderError(
            f"{folder.kind} {folder.name} cannot continue: its {answers:,} answers are {owner}, and now another model "
            f"answers{reason}; restore the first model, or start over: with --fresh, in Python fresh=True, or in "
            "another folder"
        )
    folder.write_json(file, {identity.print: KnownModel(identity=identity).model_dump(mode="json")})
    return Answerer(identity.print, identity.name)


def count_answerers(folder: RunFolder, record: RunRecord) -> tuple[AnswererCount, ...]:
    """Count how many of the selected questions each model answered, the commonest first; empty for a control.

    Of several predictions of a question the last counts. Those that failed count for none. Models are told apart by the
    prints of their answers; by their names where answers carry no print.
    """
    models, counted = read_models(folder), Counter[tuple[str | None, str | None]]()
    if record.cell.program.asks_model:
        logs = [folder.path / name for name in (PREDICTIONS, *folder.shard_logs)]
        sizes = tuple(log.stat().st_size for log in logs if log.exists())
        for (key, model), count in _last_answerers(folder, record.questions, sizes).items():
            counted[key, None if key in models else model] += count
    counts = counted.most_common()
    # Replies that name their model otherwise carry a print that is derived from the admitted one: doubts are of all.
    doubts = sum(doubt["answers"] for entry in models.values() for doubt in entry.doubts)
    names = {key: entry.identity.name for key, entry in models.items()}
    return tuple(
        AnswererCount(key, name or names.get(key or "", "an unknown model"), answers, min(answers, doubts))
        for (key, name), answers in counts
    )


# A log only grows: while it has these sizes, it says the same.
@keep(worth=lambda _: True)
def _last_answerers(
    folder: RunFolder, questions: tuple[str, ...], _sizes: tuple[int, ...]
) -> Mapping[tuple[str | None, str | None], int]:
    selected, by_question = frozenset(questions), dict[str, tuple[str | None, str | None]]()
    for prediction in folder.scan_predictions():
        answerer = prediction.answered_by, prediction.model
        if prediction.status is not Status.FAILED and any(answerer) and prediction.question in selected:
            by_question[prediction.question] = answerer
    return Counter(by_question.values())


def describe_answerers(counts: Sequence[AnswererCount]) -> str:
    """Describe who answered, by their prints if they have some, such as `A 1a2b3c4d (200) + B 5e6f7a8b (100)`."""
    return " + ".join(
        f"{count.name.rsplit('/', 1)[-1]}{f' {count.print}' if count.print else ''} ({count.answers:,}"
        f"{f', {count.doubtful:,} in doubt' if count.doubtful else ''})"
        for count in counts
    )
