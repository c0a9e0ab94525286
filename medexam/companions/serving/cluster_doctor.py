"""`medexam doctor --cluster`: each node of a job says what would fail on it and between it and the others."""

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from medexam.companions.serving.cluster.job_node import JobNode
from medexam.companions.serving.cluster.joint_checks import check_between
from medexam.companions.serving.cluster.node_checks import check_node
from medexam.companions.serving.launch.own_servers import vllm_python
from medexam.companions.serving.launch.settings import ServerSettings
from medexam.toolkit.commands import INCOMPLETE
from medexam.toolkit.errors import SpecError
from medexam.toolkit.servers import local_registry

_REGISTRY = "registry:"


def examine_nodes(endpoints: Sequence[str], model: str | None, container: str | None) -> None:
    """Print a line for each thing that was looked at; exit code 3 if one would fail."""
    registries = [endpoint.removeprefix(_REGISTRY) for endpoint in endpoints if endpoint.startswith(_REGISTRY)]
    if len(registries) != len(endpoints) or len(registries) > 1:
        raise SpecError("--cluster looks at nodes and not at servers: name at most registry:FILE")
    node = JobNode.find()
    folder = (Path(registries[0]).expanduser().absolute() if registries else local_registry().path).parent
    if container is None:
        servers = ServerSettings(python=vllm_python())
    else:
        servers = ServerSettings(container=container, container_runtime="apptainer")
    faults = 0
    for finding in (*check_node(node, model, folder, servers), *check_between(node, folder)):
        faults += finding.fault is not None
        word, text = ("ok   ", finding.observation) if finding.fault is None else ("FAILS", finding.fault)
        sys.stdout.write(f"{node.name}  {word}  {finding.subject}: {text}\n")
    sys.stdout.flush()
    if faults:
        raise typer.Exit(INCOMPLETE)
