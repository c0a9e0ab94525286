"""Which model a spec means, found out before a run is planned: its name at a server, its weights and their type here.

Nothing is loaded and no question is asked. What a live engine says of itself is `EngineInfo.identity`.
"""

from typing import Any

from medexam.errors import EndpointSilentError, EngineError
from medexam.serve.discovery.finder import ServerFinder, named_endpoints, registry_of
from medexam.serve.discovery.probe import PROBE_TIMEOUT_S, ask_name
from medexam.serve.network.endpoints import Endpoint
from medexam.serve.network.event_loop import background_loop
from medexam.specs.model import ModelSpec


def with_served_name(spec: ModelSpec) -> ModelSpec:
    """The same model, named as its servers name it where the spec leaves the name out; itself where none is missing.

    Waits for a server as a run does. Raises `EngineError` where none answers, or where it serves several models.
    """
    if not spec.is_named_by_server:
        return spec
    return spec.model_copy(update={"name": background_loop().run(_ask_name(spec))})


def known_model(spec: ModelSpec) -> dict[str, Any]:
    """What the model is, as far as it is known before it answers, as JSON-ready data for a run's identity.

    A path, an address and a way of reaching it are left out: the same model may lie elsewhere. Raises `EngineError`
    where the weights are not there, and `SpecError` where a script cannot be read.
    """
    match spec.engine:
        case "embedded":
            from medexam.serve.local_model.dtypes import pick_device, pick_dtype
            from medexam.serve.local_model.weights import find_weights

            dtype = pick_dtype(spec.dtype, pick_device(spec.device))
            return {"engine": spec.engine, "weights": find_weights(spec).content, "dtype": dtype}
        case "scripted":
            from medexam.serve.engines.scripted import script_digest

            assert spec.path is not None  # noqa: S101 - the spec's own validator requires it
            return {"engine": spec.engine, "script": script_digest(spec.path)}
        case _:
            return {"engine": spec.engine, "name": spec.name, "revision": spec.revision}


async def _ask_name(spec: ModelSpec) -> str:
    registry = registry_of(spec)
    if registry is None:
        endpoints = named_endpoints(spec)
    else:
        endpoints = await ServerFinder(registry, spec).find_first(spec.wait_s if spec.registry is not None else 0.0)
    return await _first_name(endpoints, min(PROBE_TIMEOUT_S, spec.timeout_s))


async def _first_name(endpoints: tuple[Endpoint, ...], timeout_s: float) -> str:
    """The name at the first server that answers; whether the others serve the same is seen when they are asked."""
    silent: EngineError | None = None
    for endpoint in endpoints:
        try:
            return await ask_name(endpoint, timeout_s=timeout_s)
        except EndpointSilentError as error:
            silent = silent or error
    assert silent is not None  # noqa: S101 - a spec means one server at least
    raise silent
