"""Which model a spec means, found out before a run is planned: its name at a server, or its weights and their type.

Nothing is loaded and no question is asked. What a live engine says of itself is `EngineInfo.identity`.
"""

from typing import Any

from medexam.errors import EndpointSilentError
from medexam.event_loop import background_loop
from medexam.plugins import hash_source
from medexam.serve.discovery.probe import ask_name
from medexam.serve.discovery.registry import wait_for_endpoints
from medexam.serve.engines.scripted import script_digest
from medexam.serve.local_model.weights import find_weights, pick_device, pick_dtype
from medexam.serve.timing import TIMING
from medexam.specs.base import ENGINES
from medexam.specs.model import ModelSpec


def with_served_name(spec: ModelSpec) -> ModelSpec:
    """Give the model the name that its servers give it if the spec leaves the name out; else return it unchanged.

    Waits for a server as a run does. Raises `EngineError` if none answers, or if it serves several models.
    """
    if spec.engine != "vllm" or spec.name is not None:
        return spec
    return spec.model_copy(update={"name": background_loop().run(_ask_name(spec))})


async def _ask_name(spec: ModelSpec) -> str:
    """Ask the first server that answers; whether the others serve the same is seen when they are asked."""
    endpoints = await wait_for_endpoints(spec)
    timeout_s, faults = min(TIMING.probe_silence_s, spec.timeout_s), list[EndpointSilentError]()
    for endpoint in endpoints:
        try:
            return await ask_name(endpoint, timeout_s=timeout_s, wait_s=spec.wait_s)
        except EndpointSilentError as error:
            faults.append(error)
    raise faults[0]


def known_model(spec: ModelSpec) -> dict[str, Any]:
    """Describe the model, as far as it is known before it answers, as JSON-ready data for a run's identity.

    Paths, addresses and settings of the connection are left out: the same model may lie elsewhere. Raises
    `EngineError` if the weights are not there, and `SpecError` if a script cannot be read.
    """
    if spec.engine == "embedded":
        weights, dtype = find_weights(spec), pick_dtype(spec.dtype, pick_device(spec.device))
        return {"engine": spec.engine, "weights": weights.content, "dtype": dtype}
    if spec.engine == "scripted":
        assert spec.path is not None  # noqa: S101 - the spec's own validator requires it
        return {"engine": spec.engine, "script": script_digest(spec.path)}
    if spec.is_own:
        return {"engine": hash_source(spec.engine, ENGINES), "args": spec.args, "name": spec.name}
    return {"engine": spec.engine, "name": spec.name, "revision": spec.revision}
