"""How often a server is asked again, and how long it is waited for: one object, which a test may shorten.

It knows no server: who waits reads the figure when the wait begins.
"""

from dataclasses import dataclass


@dataclass
class Timing:
    """Seconds, but for `attempts`."""

    attempts: int = 8
    """Enough that of a million calls, of which a quarter meets a fault each time, a handful stays unanswered."""
    first_wait_s: float = 0.5
    """The wait after a fault is drawn between half of this and all of it, doubled with each further fault: a server
    that is away for 20 seconds costs no question."""
    longest_wait_s: float = 16.0
    longest_hint_s: float = 60.0
    """A server that asks for a longer pause by `Retry-After` is asked again after this."""
    patience_s: float = 60.0
    """After this no further attempt begins, beyond the time that two timeouts take."""
    cooldown_s: float = 5.0
    """How long a server is left alone after a failure."""
    probe_silence_s: float = 30.0
    """Silence after which a server that is probed is given up. All that a probe asks is short."""
    notice_s: float = 10.0
    """After which a line says that a first reply is waited for."""
    poll_s: float = 2.0
    """Between two looks into a registry, and what one of its servers may take to be reached."""
    tick_s: float = 0.25
    """Between two looks at a server that was started here."""
    first_pause_s: float = 5.0
    """Before a server that crashed is started again, doubled with each further crash."""
    grace_s: float = 20.0
    """What a server may take to end by itself before its group is killed."""


TIMING = Timing()
