"""A cluster for all tests of this folder, or the reason why there is none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm.cluster import Cluster, missing, running_cluster
from slurm.place import Place


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if lacking := missing():
        pytest.skip(f"no Slurm on this machine: {lacking} (Debian: slurmctld, slurmd, slurm-client, munge)")
    with running_cluster() as running:
        yield running


@pytest.fixture
def place(cluster: Cluster, tmp_path: Path) -> Iterator[Place]:
    environment = {**cluster.environment, "MEDEXAM_CACHE": str(tmp_path), "VLLM_API_KEY": "of-the-submitter"}
    yield Place(cluster, tmp_path, environment)
    cluster.cancel_all()  # what a failed test left
