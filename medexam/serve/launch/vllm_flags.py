"""vLLM's flags: those that a user gives, and those for a profile, a layout, a processor and a group of machines."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType

from pydantic import TypeAdapter

from medexam.frozen_model import FrozenModel
from medexam.serve.launch.profile import Layout, Profile
from medexam.serve.launch.vllm_cpu import cpu_flags
from medexam.specs.strict_yaml import parse_yaml

_ALIASES = {
    "-asc": "--api-server-count",
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
}


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
        found = {} if self.address is None else {"VLLM_HOST_IP": self.address}
        if self.interface is not None:
            found |= {"NCCL_SOCKET_IFNAME": f"={self.interface}", "GLOO_SOCKET_IFNAME": self.interface}
        return found


class ExamSpeed(FrozenModel):
    """With which numbers vLLM answers exams fastest on one kind of card; `exam_speed.yaml` holds them."""

    card: str | None = None
    """Part of the card's name; None: any card."""
    at_least_gb: float
    """Its memory in GB (10^9 bytes)."""
    batched_tokens: int
    """Tokens that a step computes."""
    sequences: int | None = None
    """Requests that are computed at once; None: vLLM's own number."""
    api_servers: int = 1
    """Processes that take requests and tokenise, if the machine has `CORES` cores for each."""
    why: str


CORES = 8
"""Cores that each process of a server that takes requests needs beside the one that computes."""


@cache
def exam_speeds() -> tuple[ExamSpeed, ...]:
    """The entries of `exam_speed.yaml`, the first that fits a card first."""
    name = "exam_speed.yaml"
    text = (resources.files("medexam") / "serve" / "launch" / name).read_text(encoding="utf-8")
    return TypeAdapter(tuple[ExamSpeed, ...]).validate_python(parse_yaml(text, name))


def choose_speed(layout: Layout, card: str | None) -> ExamSpeed:
    """The numbers for a layout's cards; `card` is the name of this machine's, None if it has none."""
    fitting = (one for one in exam_speeds() if layout.gpu_gb >= one.at_least_gb)
    return next(one for one in fitting if one.card is None or one.card in (card or ""))


def speed_flags(speed: ExamSpeed, layout: Layout, cores: int) -> dict[str, str]:
    """The flags and their values; `cores` are those of the machine for one replica."""
    chosen = {"--max-num-batched-tokens": str(speed.batched_tokens)}
    if speed.sequences is not None:
        chosen["--max-num-seqs"] = str(speed.sequences)
    # With several copies of the model behind one address vLLM starts a process for each by itself.
    if layout.data_parallel == 1 and layout.nodes == 1 and (servers := min(speed.api_servers, cores // CORES)) > 1:
        chosen["--api-server-count"] = str(servers)
    return chosen


def given_values(flags: Sequence[str]) -> dict[str, str | None]:
    """Each flag in its long form with dashes -> the last value that `flags` give it, None if none follows.

    Values are keys of the result too; no flag is named like them.
    """
    given: dict[str, str | None] = {}
    for flag, following in zip(flags, (*flags[1:], None), strict=False):
        head, equals, value = flag.partition("=")
        name = head.replace("_", "-")
        given[_ALIASES.get(name, name)] = value if equals else following
    return given


def listen_flags(host: str, port: int, node: Node | None) -> list[str]:
    """Where it answers, and the group of machines it belongs to; only the first of a group answers."""
    listen = ["--host", host, "--port", str(port)]
    if node is None:
        return listen
    group = ["--nnodes", str(node.count), "--node-rank", str(node.rank)]
    group += ["--master-addr", node.head, "--master-port", str(node.port), "--distributed-executor-backend", "mp"]
    return [*(listen if node.rank == 0 else ["--headless"]), *group]


def model_flags(
    profile: Profile | None,
    layout: Layout | None,
    max_context: int | None,
    cpu: bool,
    gpus: tuple[int, ...] | None,
    flags: Sequence[str],
    faster: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Everything that the user's own `flags` do not say.

    `layout` None: no profile; `gpus` None: vLLM takes the cards it sees. `faster` are flags of which any other value
    is taken first.
    """
    # Else vLLM takes sampling values that a request leaves out from the model's own file.
    chosen: dict[str, str | None] = {"--generation-config": "vllm", **faster}
    if layout is not None:
        max_context = layout.max_context
    if max_context is not None:
        chosen["--max-model-len"] = str(max_context)
    if profile is None and layout is None and gpus is not None and len(gpus) > 1:
        chosen["--tensor-parallel-size"] = str(len(gpus))
    if profile is not None:
        chosen |= _of_profile(profile)
    if layout is not None and cpu == (layout.gpu_gb == 0):
        chosen |= _of_layout(layout)
    if cpu:
        chosen |= cpu_flags()
    more = [*(profile.flags if profile is not None else ()), *(layout.flags if layout is not None else ())]
    given = given_values([*more, *flags])
    kept = [(key, value) for key, value in chosen.items() if not _is_given(key, given)]
    return [*(part for pair in kept for part in pair if part is not None), *more]


def _of_profile(profile: Profile) -> dict[str, str | None]:
    settings: dict[str, str | None] = {}
    if profile.dtype != "auto":
        settings["--dtype"] = profile.dtype
    if profile.reasoning_parser is not None:
        settings["--reasoning-parser"] = profile.reasoning_parser
    settings["--enable-prefix-caching" if profile.prefix_caching else "--no-enable-prefix-caching"] = None
    settings["--max-logprobs"] = str(profile.max_logprobs)
    return settings


def _of_layout(layout: Layout) -> dict[str, str | None]:
    sizes = {
        "--tensor-parallel-size": layout.tensor_parallel,
        "--pipeline-parallel-size": layout.pipeline_parallel,
        "--data-parallel-size": layout.data_parallel,
    }
    chosen: dict[str, str | None] = {flag: str(size) for flag, size in sizes.items() if size > 1}
    if layout.sequences is not None:
        chosen["--max-num-seqs"] = str(layout.sequences)
    return chosen | ({"--gpu-memory-utilization": f"{layout.memory_share:g}"} if layout.gpu_gb else {})


def _is_given(key: str, given: Container[str]) -> bool:
    return key in given or f"--no-{key.removeprefix('--')}" in given or key.replace("--no-", "--") in given
