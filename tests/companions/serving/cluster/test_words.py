"""Settings as words of a command line, which the command reads back as they were."""

from dataclasses import fields
from pathlib import Path

import pytest

from medexam.cli import load_command
from medexam.cli.settings import as_words
from medexam.companions.serving.cluster.allocation import Allocation
from medexam.companions.serving.launch.settings import FleetSettings, ServerSettings, parse_gpus

SERVERS = ServerSettings(
    replicas=2,
    gpus=(0, 3),
    python=Path("/a b/python"),
    container_runtime="podman",
    port=8001,
    served_name="my model",
    max_context=4096,
)
FLEET = FleetSettings(timeout=90.5, restarts=0, registry=Path("/shared/servers.json"))
PLACE = Allocation(nodes=3, span=True, requeues=0, extra=("mem=200G", "exclusive"), folder=Path("/jobs"))


def test_the_words() -> None:
    assert as_words(ServerSettings()) == as_words(FleetSettings()) == as_words(Allocation()) == []
    assert as_words(SERVERS)[:6] == ["--replicas", "2", "--gpus", "0,3", "--python", "/a b/python"]
    assert as_words(FLEET) == ["--timeout", "90.5", "--restarts", "0", "--registry", "/shared/servers.json"]
    assert as_words(PLACE) == [
        *("--nodes", "3", "--span", "--requeues", "0", "--slurm-option", "mem=200G", "--slurm-option", "exclusive"),
        *("--slurm-folder", "/jobs"),
    ]


@pytest.mark.parametrize("settings", [SERVERS, FLEET, PLACE])
def test_the_command_reads_them_back(settings) -> None:
    read = load_command("serve").make_context("serve", ["model", *as_words(settings)]).params
    for field in fields(settings):
        value, given = getattr(settings, field.name), read[field.name]
        if field.name == "gpus":
            given = parse_gpus(given)
        assert (tuple(given or ()) if isinstance(value, tuple) else given) == value
