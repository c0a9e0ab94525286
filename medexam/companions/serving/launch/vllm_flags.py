"""vLLM's flags: those that a user gives, and those for a profile, a layout, a processor and a group of machines."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from pydantic import TypeAdapter

from medexam.companions.serving.launch.profile import Layout, Profile
from medexam.companions.serving.launch.vllm_cpu import cpu_flags
from medexam.toolkit.files import FrozenModel
from medexam.toolkit.specs import parse_yaml

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
        variables = {} if self.address is None else {"VLLM_HOST_IP": self.address}
        if self.interface is not None:
            variables |= {"NCCL_SOCKET_IFNAME": f"={self.interface}", "GLOO_SOCKET_IFNAME": self.interface}
        return variables


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
    """Load the entries of `exam_speed.yaml`, the first that fits a card first."""
    name = "exam_speed.yaml"
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return TypeAdapter(tuple[ExamSpeed, ...]).validate_python(parse_yaml(text, name))


def choose_speed(layout: Layout, card: str | None) -> ExamSpeed:
    """Choose the numbers for a layout's cards; `card` is the name of this machine's, None if it has none."""
    speeds = (speed for speed in exam_speeds() if layout.gpu_gb >= speed.at_least_gb)
    return next(speed for speed in speeds if speed.card is None or speed.card in (card or ""))


def speed_flags(speed: ExamSpeed, layout: Layout, cores: int) -> dict[str, str]:
    """Return the flags and their values; `cores` are those of the machine for one replica."""
    flags = {"--max-num-batched-tokens": str(speed.batched_tokens)}
    if speed.sequences is not None:
        flags["--max-num-seqs"] = str(speed.sequences)
    # With several copies of the model behind one address vLLM starts a process for each by itself.
    if layout.data_parallel == 1 and layout.nodes == 1 and (servers := min(speed.api_servers, cores // CORES)) > 1:
        flags["--api-server-count"] = str(servers)
    return flags


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
    profile: Profile | None,
    layout: Layout | None,
    max_context: int | None,
    cpu: bool,
    gpus: tuple[int, ...] | None,
    flags: Sequence[str],
    faster: Mapping[str, str],
) -> list[str]:
    """List everything that the user's own `flags` do not say.

    `layout` None: no profile; `gpus` None: vLLM takes the cards it sees. `faster` are flags of which any other value
    is taken first.
    """
    # Else vLLM takes sampling values that a request leaves out from the model's own file.
    defaults: dict[str, str | None] = {"--generation-config": "vllm", **faster}
    if layout is not None:
        max_context = layout.max_context
    if max_context is not None:
        defaults["--max-model-len"] = str(max_context)
    if profile is None and layout is None and gpus is not None and len(gpus) > 1:
        defaults["--tensor-parallel-size"] = str(len(gpus))
    if profile is not None:
        defaults |= _of_profile(profile)
    if layout is not None and cpu == (layout.gpu_gb == 0):
        defaults |= _of_layout(layout)
    if cpu:
        defaults |= cpu_flags()
    profile_flags = [*(profile.flags if profile is not None else ()), *(layout.flags if layout is not None else ())]
    value_by_flag = given_values([*profile_flags, *flags])
    pairs = [(key, value) for key, value in defaults.items() if not _is_given(key, value_by_flag)]
    return [*(part for pair in pairs for part in pair if part is not None), *profile_flags]


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
    options: dict[str, str | None] = {flag: str(size) for flag, size in sizes.items() if size > 1}
    if layout.sequences is not None:
        options["--max-num-seqs"] = str(layout.sequences)
    return options | ({"--gpu-memory-utilization": f"{layout.memory_share:g}"} if layout.gpu_gb else {})


def _is_given(key: str, flags: Container[str]) -> bool:
    return key in flags or f"--no-{key.removeprefix('--')}" in flags or key.replace("--no-", "--") in flags
