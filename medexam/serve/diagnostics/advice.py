"""What to change at servers, said from what was seen of them.

Each rule looks at one thing that was found out and gives one line. This module asks nothing and knows no spec.
"""

from collections.abc import Iterator

from medexam.serve.diagnostics.api_check import honours_schema
from medexam.serve.diagnostics.diagnosis import Diagnosis, DiagnosisReport
from medexam.serve.diagnostics.replicas import ReplicaComparison
from medexam.serve.discovery.capabilities import Capabilities
from medexam.serve.discovery.token_counts import UNLIMITED

SAME_NATS = 0.01
"""Log-probabilities that differ by no more are those of one model."""
_MANY_NAMED = 128
_SHOWN = 3
"""Differing servers that a line names."""

_OWN_SAMPLING = {"vllm": "--generation-config vllm", "sglang": "--sampling-defaults openai"}
"""Kind of server -> the flag with which it takes no sampling values from the model's files."""
_NAMES = {
    "model": "model",
    "source": "weights",
    "server_version": "version",
    "max_context": "context",
    "named_logprobs": "tokens that a request may name",
}
"""What replicas may differ in, in words."""


def advise(report: DiagnosisReport) -> tuple[str, ...]:
    """Write one line for each thing to change, or to know; none if nothing is to be said."""
    several = len(report.diagnoses) > 1
    lines = []
    for diagnosis in report.diagnoses:
        for line in _about(diagnosis):
            has_address = not several or diagnosis.endpoint in line
            lines.append(line if has_address else f"{diagnosis.endpoint}: {line}")
    if report.replicas is not None:
        lines += _about_replicas(report.replicas)
    return tuple(lines)


def _about(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.seen is None:
        yield diagnosis.fault or "cannot be used"
        return
    yield from _constraints(diagnosis.seen, honours_schema(diagnosis.api))
    for rule in (_sampling, _tokens, _logprobs, _template):
        yield from rule(diagnosis.seen)
    yield from _reads(diagnosis)
    if diagnosis.burst is not None and diagnosis.burst.failed:
        yield f"requests of the burst that failed: {diagnosis.burst.failed}; look into the server's log"


def _constraints(capabilities: Capabilities, schema: str | None) -> Iterator[str]:
    if not capabilities.structured_outputs and capabilities.chat:
        cost = (
            "only choices that are single tokens can be enforced"
            if capabilities.guided_by
            else "no choice can be enforced"
        )
        if capabilities.is_vllm:
            way_out = "upgrade to vLLM 0.12 or later"
        elif schema:
            way_out = (
                f"ask it by engine litellm (name: openai/{capabilities.model}), which enforces choices by {schema}"
            )
        else:
            way_out = "set program.answer_format to free, or serve the model with vLLM"
        manner = "" if capabilities.is_vllm else " by engine vllm"
        yield f"{_did(capabilities, 'structured_outputs')}, so {cost}{manner}: {way_out}"
    if not capabilities.allowed_token_ids and capabilities.tokenizes:
        yield (
            f"{_did(capabilities, 'allowed_token_ids')}, so guided answers need a slower grammar"
            f"{_upgrade(capabilities)}"
        )
    if not capabilities.list_prompts:
        verb = "refuses" if "several prompts" in capabilities.refusals else "answers one prompt of"
        yield f"it {verb} a list of prompts, so each is sent alone: if vLLM is behind it, ask vLLM itself"


def _did(capabilities: Capabilities, field: str) -> str:
    """Say in words whether a field was ignored or refused."""
    refusal = capabilities.refusals.get(field)
    return f"{field} is refused ({refusal})" if refusal else f"{field} is ignored"


def _upgrade(capabilities: Capabilities, version: str = "") -> str:
    """Return the way out for what vLLM has; another server has no such version."""
    return (
        f": upgrade {'to ' if version else ''}vLLM{version}" if capabilities.is_vllm else ": serve the model with vLLM"
    )


def _sampling(capabilities: Capabilities) -> Iterator[str]:
    sampling = capabilities.sampling
    if sampling.filled:
        version = capabilities.server_version or ""
        way_out = next((flag for kind, flag in _OWN_SAMPLING.items() if version.startswith(kind)), "")
        yield (
            f"it takes {', '.join(sampling.filled)} from the model's own settings if a request leaves them out; "
            f"runs send neutral values, other clients may not{f': start it with {way_out}' if way_out else ''}"
        )
    if sampling.unread:
        yield (
            f"it ignores {', '.join(sampling.unread)}, so replies may be sampled with the server's own values: make "
            "these neutral at the server"
        )


def _tokens(capabilities: Capabilities) -> Iterator[str]:
    if not capabilities.tokenizes:
        way_out = (
            "ask the vLLM server itself, or let the gateway pass /tokenize and /detokenize on"
            if capabilities.is_vllm
            else "serve the model with vLLM, or use the embedded engine"
        )
        yield (
            "/tokenize is not served as vLLM does, so neither guided answers by prefill nor log-probabilities of given "
            f"texts are possible: {way_out}"
        )
    elif not capabilities.renders and capabilities.chat:
        yield "the rendered chat prompt does not survive /detokenize and /tokenize, so guided answers need a grammar"


def _logprobs(capabilities: Capabilities) -> Iterator[str]:
    if not capabilities.tokenizes:
        return
    if capabilities.named_logprobs == 0:
        cost = (
            "each prompt is read once for each option, by echo"
            if capabilities.reads
            else "no log-probabilities can be read"
        )
        yield f"{_did(capabilities, 'logprob_token_ids')}, so {cost}{_upgrade(capabilities, ' 0.29 or later')}"
    elif capabilities.named_logprobs < _MANY_NAMED:
        yield (
            f"a request may name {capabilities.named_logprobs} tokens, so log-probabilities take more requests: "
            f"start it with --max-logprobs {_MANY_NAMED}"
        )
    if capabilities.named_logprobs and capabilities.allowed_token_ids and not capabilities.masked_logprobs:
        yield (
            "under a constraint its log-probabilities count only the allowed tokens: start it with --logprobs-mode "
            "raw_logprobs"
        )


def _template(capabilities: Capabilities) -> Iterator[str]:
    if not capabilities.chat:
        yield "for information: it has no chat template, so it reads and continues plain text alone"
        return
    if capabilities.limit is None:
        yield UNLIMITED.format("it")


def _reads(diagnosis: Diagnosis) -> Iterator[str]:
    for verdict in diagnosis.reads:
        if verdict.difference is not None and verdict.difference > SAME_NATS:
            yield (
                f"reading by {verdict.way} differs by {verdict.difference:.2g} nats a token from the first way: state "
                "program.read_by in the spec, and do not compare runs read by different ways"
            )


def _about_replicas(replicas: ReplicaComparison) -> Iterator[str]:
    for name, values in replicas.differing.items():
        pairs = list(zip(replicas.endpoints, values, strict=True))[:_SHOWN]
        listing = ", ".join(f"{endpoint}: {'not told' if value is None else value}" for endpoint, value in pairs)
        yield f"the servers differ in {_NAMES[name]} ({listing}): start all alike, or give a run those that are"
    if replicas.same_tokens is False:
        yield "the servers cut the same text into different tokens: they are different models, give a run one of them"
    if replicas.difference is not None and replicas.difference > SAME_NATS:
        yield (
            f"the servers' log-probabilities differ by up to {replicas.difference:.2g} nats a token: start all with "
            "the same revision, --dtype and --quantization, on GPUs of one kind"
        )
