"""What files of other harnesses tell of their protocol, in the names of `medexam.experiments.store.protocol`.

A text or template stands for itself by a short digest, so that equal ones are known to be equal.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from medexam.experiments import digest_of

Record = Mapping[str, Any]
Told = dict[str, str]
NONE = "none"
"""What stands where a protocol has nothing of a kind, as it does for our own runs."""
_LM_EVAL_WORDS = (
    *("description", "doc_to_text", "doc_to_choice", "doc_to_target", "target_delimiter", "fewshot_delimiter"),
    "gen_prefix",
)
_IGNORED = ("ignore_case", "ignore_punctuation", "ignore_numbers", "regexes_to_ignore")
_NORMS = {"acc": "none", "acc_norm": "per character", "acc_bytes": "per byte"}
_HELM_WORDS = ("instructions", "global_prefix", "global_suffix", "reference_prefix", "reference_prefix_characters")
_HELM_NORMS = {"quasi_": "case, articles, punctuation and white space", "": "white space around the reply"}


def of_lm_eval(results: Record, task: str, measure: str, name: str) -> Told:
    """Read the protocol from the results file of lm-evaluation-harness; empty without one. `name` is the filter's."""
    config = (results.get("configs") or {}).get(task)
    if not config:
        return {}
    run = results.get("config") or {}
    words = {field: config.get(field) for field in _LM_EVAL_WORDS}
    words |= {
        field: results.get(field) for field in ("system_instruction", "chat_template_sha", "fewshot_as_multiturn")
    }
    steps = next((entry.get("filter") or () for entry in config.get("filter_list") or () if entry["name"] == name), ())
    metric: Record = next((entry for entry in config.get("metric_list") or () if entry.get("metric") == measure), {})
    ignored = [field.replace("_", " ") for field in _IGNORED if metric.get(field)]
    generates = config.get("output_type") == "generate_until"
    filters = ["; ".join(_pairs(step) for step in steps)] if steps else []
    return _drop_empty(
        {
            "prompt": f"{config.get('doc_to_text')!s:.60} {digest_of(words)}".replace("\n", " "),
            "demonstrations": str(config.get("num_fewshot") or NONE),
            "answer": ", ".join([measure, "the reply" if generates else "the likeliest option", *filters]),
            "normalisation": (", ".join(ignored) or NONE) if generates else _NORMS.get(measure),
            "decoding": _pairs({**(config.get("generation_kwargs") or {}), **(run.get("gen_kwargs") or {})})
            if generates
            else NONE,
            "their data": _pairs(
                {
                    **{field: config.get(field) for field in ("dataset_path", "dataset_name", "test_split")},
                    "version": (results.get("versions") or {}).get(task),
                }
            ),
        }
    )


def of_inspect(header: Record, scorer: str) -> Told:
    """Read the protocol from the header of a log of Inspect."""
    evaluation, plan = header["eval"], header.get("plan") or {}
    steps = [{name: step.get(name) for name in ("solver", "params")} for step in plan.get("steps") or ()]
    names = [str(step["solver"]) for step in steps]
    dataset = evaluation.get("dataset") or {}
    return _drop_empty(
        {
            "prompt": f"{', '.join(names)} {digest_of(steps)}" if steps else None,
            "answer": f"scorer {scorer}",
            "decoding": _pairs({**(plan.get("config") or {}), **(evaluation.get("model_generate_config") or {})}),
            "their data": _pairs({field: dataset.get(field) for field in ("name", "location", "samples", "shuffled")}),
        }
    )


def of_helm(spec: Record, measure: str) -> Told:
    """Read the protocol from `run_spec.json` of HELM; empty without one."""
    adapter = spec.get("adapter_spec")
    if not adapter:
        return {}
    words = {name: adapter[name] for name in adapter if name in _HELM_WORDS or name.endswith(("_prefix", "_suffix"))}
    scenario, pattern = spec.get("scenario_spec") or {}, adapter.get("output_mapping_pattern")
    decoding = {name: adapter.get(name) for name in ("temperature", "max_tokens", "stop_sequences", "num_outputs")}
    return _drop_empty(
        {
            "prompt": f"{adapter.get('method')} {digest_of(words)}",
            "demonstrations": str(adapter.get("max_train_instances") or NONE),
            "answer": ", ".join([measure, *([f"pattern {pattern}"] if pattern else [])]),
            "normalisation": next(norm for prefix, norm in _HELM_NORMS.items() if measure.startswith(prefix)),
            "decoding": _pairs(decoding),
            "their data": _pairs({"scenario": scenario.get("class_name"), **(scenario.get("args") or {})}),
        }
    )


def of_every_eval_ever(evaluation: Record, result: Record | None) -> Told:
    """Read the protocol from the evaluation's own file of Every Eval Ever; empty without one."""
    library, result_fields = evaluation.get("eval_library") or {}, result or {}
    arguments = dict((result_fields.get("generation_config") or {}).get("generation_args") or {})
    template = arguments.pop("prompt_template", None)
    data, metric = result_fields.get("source_data") or {}, result_fields.get("metric_config") or {}
    return _drop_empty(
        {
            "harness": f"{library.get('name')} {library.get('version')}, by Every Eval Ever" if library else None,
            "prompt": digest_of(template) if template else None,
            "answer": metric.get("evaluation_description") or metric.get("metric_id"),
            "decoding": _pairs(arguments) if arguments else None,
            "their data": _pairs({field: data.get(field) for field in ("dataset_name", "hf_repo", "hf_split")}),
        }
    )


def _drop_empty(settings: Mapping[str, str | None]) -> Told:
    return {name: value for name, value in settings.items() if value}


def _pairs(values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in dict(values).items() if value not in (None, "", {}, []))
