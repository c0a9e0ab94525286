"""What files of other harnesses tell of their protocol, in the names of `medexam.experiments.store.protocol`.

A text or template stands for itself by a short digest, so that equal ones are known to be equal.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from medexam.experiments.store.protocol import NONE, digest_of

Record = Mapping[str, Any]
Told = dict[str, str]
_LM_EVAL_WORDS = (
    *("description", "doc_to_text", "doc_to_choice", "doc_to_target", "target_delimiter", "fewshot_delimiter"),
    "gen_prefix",
)
_IGNORED = ("ignore_case", "ignore_punctuation", "ignore_numbers", "regexes_to_ignore")
_NORMS = {"acc": "none", "acc_norm": "per character", "acc_bytes": "per byte"}
_HELM_WORDS = ("instructions", "global_prefix", "global_suffix", "reference_prefix", "reference_prefix_characters")
_HELM_NORMS = {"quasi_": "case, articles, punctuation and white space", "": "white space around the reply"}


def of_lm_eval(results: Record, task: str, measure: str, name: str) -> Told:
    """By the results file of lm-evaluation-harness; empty without one. `name` is the filter's."""
    config = (results.get("configs") or {}).get(task)
    if not config:
        return {}
    run = results.get("config") or {}
    words = {each: config.get(each) for each in _LM_EVAL_WORDS}
    words |= {each: results.get(each) for each in ("system_instruction", "chat_template_sha", "fewshot_as_multiturn")}
    steps = next((one.get("filter") or () for one in config.get("filter_list") or () if one["name"] == name), ())
    metric: Record = next((one for one in config.get("metric_list") or () if one.get("metric") == measure), {})
    ignored = [each.replace("_", " ") for each in _IGNORED if metric.get(each)]
    generated = config.get("output_type") == "generate_until"
    read = ["; ".join(_pairs(step) for step in steps)] if steps else []
    return _kept(
        {
            "prompt": f"{config.get('doc_to_text')!s:.60} {digest_of(words)}".replace("\n", " "),
            "demonstrations": str(config.get("num_fewshot") or NONE),
            "answer": ", ".join([measure, "the reply" if generated else "the likeliest option", *read]),
            "normalisation": (", ".join(ignored) or NONE) if generated else _NORMS.get(measure),
            "decoding": _pairs({**(config.get("generation_kwargs") or {}), **(run.get("gen_kwargs") or {})})
            if generated
            else NONE,
            "their data": _pairs(
                {
                    **{each: config.get(each) for each in ("dataset_path", "dataset_name", "test_split")},
                    "version": (results.get("versions") or {}).get(task),
                }
            ),
        }
    )


def of_inspect(header: Record, scorer: str) -> Told:
    """By the header of a log of Inspect."""
    told, plan = header["eval"], header.get("plan") or {}
    steps = [{name: one.get(name) for name in ("solver", "params")} for one in plan.get("steps") or ()]
    names = [str(one["solver"]) for one in steps]
    dataset = told.get("dataset") or {}
    return _kept(
        {
            "prompt": f"{', '.join(names)} {digest_of(steps)}" if steps else None,
            "answer": f"scorer {scorer}",
            "decoding": _pairs({**(plan.get("config") or {}), **(told.get("model_generate_config") or {})}),
            "their data": _pairs({each: dataset.get(each) for each in ("name", "location", "samples", "shuffled")}),
        }
    )


def of_helm(spec: Record, measure: str) -> Told:
    """By `run_spec.json` of HELM; empty without one."""
    adapter = spec.get("adapter_spec")
    if not adapter:
        return {}
    words = {name: adapter[name] for name in adapter if name in _HELM_WORDS or name.endswith(("_prefix", "_suffix"))}
    scenario, pattern = spec.get("scenario_spec") or {}, adapter.get("output_mapping_pattern")
    decoding = {name: adapter.get(name) for name in ("temperature", "max_tokens", "stop_sequences", "num_outputs")}
    return _kept(
        {
            "prompt": f"{adapter.get('method')} {digest_of(words)}",
            "demonstrations": str(adapter.get("max_train_instances") or NONE),
            "answer": ", ".join([measure, *([f"pattern {pattern}"] if pattern else [])]),
            "normalisation": next(said for start, said in _HELM_NORMS.items() if measure.startswith(start)),
            "decoding": _pairs(decoding),
            "their data": _pairs({"scenario": scenario.get("class_name"), **(scenario.get("args") or {})}),
        }
    )


def of_every_eval_ever(evaluation: Record, result: Record | None) -> Told:
    """By the evaluation's own file of Every Eval Ever; empty without one."""
    library, given = evaluation.get("eval_library") or {}, result or {}
    arguments = dict((given.get("generation_config") or {}).get("generation_args") or {})
    template = arguments.pop("prompt_template", None)
    data, metric = given.get("source_data") or {}, given.get("metric_config") or {}
    return _kept(
        {
            "harness": f"{library.get('name')} {library.get('version')}, by Every Eval Ever" if library else None,
            "prompt": digest_of(template) if template else None,
            "answer": metric.get("evaluation_description") or metric.get("metric_id"),
            "decoding": _pairs(arguments) if arguments else None,
            "their data": _pairs({each: data.get(each) for each in ("dataset_name", "hf_repo", "hf_split")}),
        }
    )


def _kept(told: Mapping[str, str | None]) -> Told:
    return {name: value for name, value in told.items() if value}


def _pairs(values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in dict(values).items() if value not in (None, "", {}, []))
