"""A cluster for all tests of this folder, or the reason why there is none."""

from collections.abc import Iterator

import pytest

from slurm.cluster import Cluster, missing, running_cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if lacking := missing():
        pytest.skip(f"no Slurm on this machine: {lacking} (Debian: slurmctld, slurmd, slurm-client, munge)")
    pytest.importorskip("submitit", reason="submitit is not installed: pip install 'medexam[slurm]'")
    with running_cluster() as running:
        yield running
