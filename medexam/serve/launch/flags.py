"""vLLM's flags: those that a user gives, and those for a profile, a layout, a processor and a group of machines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from medexam.serve.local_model.weights import multiplies_bfloat16

if TYPE_CHECKING:
    from medexam.serve.launch.memory import Placement
    from medexam.serve.launch.profile import Profile

_ALIASES = {
    "-asc": "--api-server-count",
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
}
_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "--trust-remote-code": "would run code from the model's repository; take trust-remote-code out",
        "--api-key": "shows the key to everyone on this machine; take it out, and put the key into the environment "
        "variable VLLM_API_KEY",
        "--hf-token": "shows the token to everyone on this machine; take it out, and put it into the environment "
        "variable HF_TOKEN",
        "--config": "names a file that may hold flags that are refused; write the flags themselves",
        "--host": "is set by `medexam serve MODEL --host ADDRESS`; write it so, before any `--`",
        "--port": "is set by `medexam serve MODEL --port N`; write it so, before any `--`",
    }
)
"""Flags that nobody may give -> why, and the way out: they run foreign code, show a key, or move a server."""
_SHORTEST = len("--x")
_LARGE_GB = 70
"""Memory of a card from which larger steps are worth it."""
PROCESSOR: Mapping[str, str] = MappingProxyType({"VLLM_CPU_KVCACHE_SPACE": "2"})
"""Variables of a server on the processor: GiB of keys and values."""
_CPU_CONTEXT = 2_048
"""Tokens of prompt and reply of a profile that is made for the processor."""


@dataclass(frozen=True)
class Node:
    """Which of several machines this is, for a model that spans them."""

    rank: int
    """0 is the head, which answers; the others only compute."""
    count: int
    head: str
    """Address of the head that the others reach."""
    port: int = 29501
    """Where the machines meet on the head; not where it answers."""
    address: str | None = None
    """By which the others reach this one; None: vLLM chooses."""
    interface: str | None = None
    """The network interface with that address; None: NCCL and gloo choose."""

    @property
    def environment(self) -> dict[str, str]:
        """What vLLM, NCCL and gloo are told of this machine's address; they would choose among several by chance."""
        variables = {} if self.address is None else {"VLLM_HOST_IP": self.address}
        if self.interface is not None:
            variables |= {"NCCL_SOCKET_IFNAME": f"={self.interface}", "GLOO_SOCKET_IFNAME": self.interface}
        return variables


def refused_flag(flags: Sequence[str]) -> str | None:
    """Return what to tell a user who gave a flag, or a beginning of one, that is refused; None where none is.

    vLLM's parser takes underscores for dashes, and any beginning of a flag that no other flag shares.
    """
    for word in flags:
        prefix = word.partition("=")[0].replace("_", "-")
        if prefix.startswith("--") and len(prefix) >= _SHORTEST:
            for flag, reason in _REFUSED.items():
                if flag.startswith(prefix):
                    return f"{flag if prefix == flag else f'{prefix}, short for {flag},'} {reason}"
    return None


def given_values(flags: Sequence[str]) -> dict[str, str | None]:
    """Map each flag in its long form with dashes to the last value that `flags` give it, None if none follows.

    Values are keys of the result too; no flag is named like them.
    """
    value_by_flag: dict[str, str | None] = {}
    for flag, following in zip(flags, (*flags[1:], None), strict=False):
        head, equals, value = flag.partition("=")
        name = head.replace("_", "-")
        value_by_flag[_ALIASES.get(name, name)] = value if equals else following
    return value_by_flag


def listen_flags(host: str, port: int, node: Node | None) -> list[str]:
    """Say where it answers, and the group of machines it belongs to; only the first of a group answers."""
    listen = ["--host", host, "--port", str(port)]
    if node is None:
        return listen
    group = ["--nnodes", str(node.count), "--node-rank", str(node.rank)]
    group += ["--master-addr", node.head, "--master-port", str(node.port), "--distributed-executor-backend", "mp"]
    return [*(listen if node.rank == 0 else ["--headless"]), *group]


def model_flags(
    profile: "Profile | None", placement: "Placement", flags: Sequence[str], node: Node | None, *, cpu: bool
) -> list[str]:
    """List everything that the user's own `flags` do not say."""
    # Else vLLM takes sampling values that a request leaves out from the model's own file.
    defaults: dict[str, str | None] = {"--generation-config": "vllm"}
    more: Sequence[str] = ()
    if profile is not None:
        more = profile.flags if node is None or profile.flags_over_nodes is None else profile.flags_over_nodes
        defaults |= _of_profile(profile)
        if profile.on_cpu and node is not None:
            defaults["--pipeline-parallel-size"] = str(node.count)
    if placement.layout is not None:
        defaults |= _of_layout(placement)
    if cpu:
        defaults |= _of_processor()
    values = given_values([*more, *flags])
    pairs = [
        (key, value)
        for key, value in defaults.items()
        if not values.keys() & {key, f"--no-{key.removeprefix('--')}", key.replace("--no-", "--")}
    ]
    return [*(part for pair in pairs for part in pair if part is not None), *more]


def _of_profile(profile: "Profile") -> dict[str, str | None]:
    settings: dict[str, str | None] = {} if profile.dtype == "auto" else {"--dtype": profile.dtype}
    if profile.reasoning_parser is not None:
        settings["--reasoning-parser"] = profile.reasoning_parser
    if profile.on_cpu:
        settings["--max-model-len"] = str(_CPU_CONTEXT)
    return {**settings, "--enable-prefix-caching": None, "--max-logprobs": "128"}


def _of_layout(placement: "Placement") -> dict[str, str | None]:
    layout = placement.layout
    assert layout is not None  # noqa: S101
    sizes = {"--tensor-parallel-size": layout.tensor_parallel, "--pipeline-parallel-size": layout.pipeline_parallel}
    options: dict[str, str | None] = {flag: str(size) for flag, size in sizes.items() if size > 1}
    # Most of an exam's work is reading prompts: twice vLLM's tokens a step, which suit chats. On an A100 larger
    # steps are slower (vllm-project/vllm, pull request 17885).
    large = placement.card_gb >= _LARGE_GB and "A100" not in placement.card
    return {
        "--max-model-len": str(layout.max_context),
        **options,
        "--gpu-memory-utilization": f"{layout.memory_share:g}",
        "--max-num-batched-tokens": "16384" if large else "4096",
    }


def _of_processor() -> dict[str, str | None]:
    """Return what vLLM's build for processors wants to be told.

    Its own blocks of 128 tokens share far fewer prompt prefixes. Prompts are read whole: vLLM 0.32 takes back the
    random numbers of a request with a seed whose prompt is read in parts, which torch's generators for processors
    refuse, and the server ends. Float32 is many times faster if the processor does not multiply bfloat16.
    """
    flags: dict[str, str | None] = {"--block-size": "32", "--no-enable-chunked-prefill": None}
    return flags | ({} if multiplies_bfloat16() else {"--dtype": "float32"})
