"""What `medexam optimize` optimizes."""

from dataclasses import dataclass
from typing import Annotated

from medexam.cli.options import OverridesOption, RunsDirOption, TrackingOption
from medexam.cli.settings import Setting


@dataclass(frozen=True)
class OptimizeSettings:
    """What is optimized, beside the spec, and where it lies."""

    overrides: OverridesOption = ()
    runs_dir: RunsDirOption = None
    plan: Annotated[bool, Setting("Say what would be tried and what it may cost, and stop.")] = False
    fresh: Annotated[bool, Setting("Start another optimization beside the existing one.")] = False
    tracking_uri: TrackingOption = None
