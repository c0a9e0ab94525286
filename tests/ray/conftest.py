"""One Ray cluster on this machine, for all tests here."""

import contextlib
import logging
import os
import secrets

import pytest

from command_line import _untracked, medexam
from waiting import BACKSTOP_S, until

__all__ = ["_untracked", "medexam"]
# Read when Ray is first imported: it listens on the loopback address alone, and sends no statistics.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"


@pytest.fixture(scope="session")
def cluster():
    """A cluster that this process has joined."""
    from ray._private import services

    import ray

    get_node = services.get_node

    def get_node_when_there(*address):
        """Wait longer than the half minute that Ray grants the first node, and that no setting changes."""
        nodes = []

        def comes():
            with contextlib.suppress(RuntimeError):
                nodes.append(get_node(*address))
            return nodes

        until(comes, "a node of Ray")
        return nodes[0]

    with pytest.MonkeyPatch.context() as patch:
        # Each test has a HOME of its own, and drivers look there for the token.
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        # Ray gives them half a minute, and a busy machine needs more.
        for name in ("RAY_gcs_server_port_wait_time_s", "RAY_worker_register_timeout_seconds"):
            patch.setenv(name, f"{BACKSTOP_S:.0f}")
        patch.setattr(services, "get_node", get_node_when_there)
        ray.init(
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            num_cpus=2,
            object_store_memory=100_000_000,
        )
        yield ray
        ray.shutdown()
