"""lm-evaluation-harness 0.3: the `TASK_write_out_info.json` of `--write_out`, a record for each question.

Of a multiple-choice task `prompt_N` is the prompt with option N behind it and `logit_N` that option's log-likelihood.
Of a task that generates there is one of each, and the second is the reply. Measures are written as texts.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from medexam.inputs import first_line
from medexam_companions.harnesses.imports.lm_eval import NORMS, are_labels, score_options
from medexam_companions.harnesses.imports.samples import MISSHAPEN, HarnessSample, Results, ResultsError

Record = Mapping[str, Any]
_OWN = ("doc_id", "truth", "gold", "pred")
_VERDICTS = {"1.0": True, "1": True, "True": True, "0.0": False, "0": False, "False": False}


def find_write_out(document: object) -> list[Record]:
    """Find the records of a JSON document of this harness; empty if it is none."""
    records = list(document.values()) if isinstance(document, Mapping) else document
    if not isinstance(records, list) or not records:
        return []
    is_own = (isinstance(record, Mapping) and {"doc_id", "prompt_0", "logit_0"} <= record.keys() for record in records)
    return records if all(is_own) else []


def read_write_out(path: Path, records: Sequence[Record]) -> list[Results]:
    """Read the samples under each measure; raises `ResultsError` if a record is of another shape."""
    by_measure: dict[str, list[HarnessSample]] = {}
    unclear: set[str] = set()
    for record in records:
        try:
            for measure, right in _verdicts(record).items():
                if right is None:
                    unclear.add(measure)
                by_measure.setdefault(measure, []).append(_sample(record, measure, right))
        except MISSHAPEN as error:
            raise ResultsError(
                f"{path}: question {record['doc_id']} is not in the format of lm-evaluation-harness "
                f"({first_line(error)})"
            ) from None
    task = path.name.partition(".")[0].removesuffix("_write_out_info")
    results = []
    for measure, samples in by_measure.items():
        unit, norm, _ = NORMS[measure] if any(sample.scores for sample in samples) else (None, None, None)
        if measure not in unclear:
            results.append(Results("lm_eval", task, measure, samples, version="0.3", score_unit=unit, score_norm=norm))
    if not results:
        raise ResultsError(f"{path}: no measure of its samples says right or wrong, so there is no answer to import")
    return results


def _verdicts(record: Record) -> dict[str, bool | None]:
    own = {name: str(value) for name, value in record.items() if not name.startswith(("prompt_", "logit_"))}
    return {name: _VERDICTS.get(value) for name, value in own.items() if name not in _OWN}


def _sample(record: Record, measure: str, right: bool | None) -> HarnessSample:
    count = sum(name.startswith("logit_") for name in record)
    prompts = [str(record[f"prompt_{place}"]) for place in range(count)]
    outcomes = [record[f"logit_{place}"] for place in range(count)]
    truth = str(record.get("truth", ""))
    if count == 1:
        reply = str(outcomes[0])
        return HarnessSample(stem=prompts[0], target=truth or None, right=right, choice=reply, reply=reply)
    context, texts = _split(prompts)
    options = () if are_labels(texts) else texts
    target = int(truth) if truth.isdecimal() else None
    likelihoods = tuple(float(outcome[0] if isinstance(outcome, list) else outcome) for outcome in outcomes)
    if not all(map(math.isfinite, likelihoods)):
        return HarnessSample(stem=context, options=options, target=target, right=right, failed=True)
    scores = score_options(measure, likelihoods, texts)
    choice = None if scores is None else scores.index(max(scores))
    return HarnessSample(stem=context, options=options, target=target, right=right, choice=choice, scores=scores)


def _split(prompts: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Split prompts into what all begin with, and the option behind it in each. The option begins behind the last line
    or colon.
    """
    first, last = min(prompts), max(prompts)
    shared_length = next(
        (position for position, pair in enumerate(zip(first, last, strict=False)) if len(set(pair)) > 1), len(first)
    )
    begins = max(first.rfind("\n", 0, shared_length), first.rfind(":", 0, shared_length)) + 1
    return first[:begins], tuple(prompt[begins:].strip() for prompt in prompts)
