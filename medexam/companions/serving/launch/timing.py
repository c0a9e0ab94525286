"""How long servers and nodes are waited for, and how often they are looked at: one object, which a test may shorten."""

from dataclasses import dataclass


@dataclass
class LaunchTiming:
    """Seconds."""

    tick_s: float = 0.25
    """Between two looks at the servers of a fleet."""
    heartbeat_s: float = 5.0
    """Between two heartbeats in a registry; a server whose heartbeat is older than 30 seconds counts no more."""
    first_pause_s: float = 5.0
    """Before a server that crashed is started again, doubled with each further crash."""
    grace_s: float = 20.0
    """What a server may take to end by itself before its group is killed."""
    meeting_s: float = 120.0
    """What a node of a job waits for the first one's word."""
    nodes_s: float = 60.0
    """What a check between nodes waits for the others."""


TIMING = LaunchTiming()
