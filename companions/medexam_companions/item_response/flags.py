"""What `medexam compare` takes about the order of runs and about questions; it imports nothing that takes time."""

from dataclasses import dataclass
from typing import Annotated

from medexam.cli.settings import Setting
from medexam.experiments.compare.section import Finder


@dataclass(frozen=True)
class ItemResponseSettings:
    """What is fitted."""

    strengths: Annotated[bool, Setting("Three runs or more: their order, and which are not separable.")] = False
    item_response: Annotated[
        bool, Setting("Three runs or more: which questions are hard, useless or may have a wrong key.")
    ] = False

    def finders(self) -> list[Finder]:
        """Return what finds it."""
        from medexam_companions.item_response.questions import find_item_response
        from medexam_companions.item_response.strengths import find_strengths

        return [
            finder
            for finder, is_asked in ((find_strengths, self.strengths), (find_item_response, self.item_response))
            if is_asked
        ]
