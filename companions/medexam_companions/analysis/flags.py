"""What `medexam compare` takes about contamination, runs and questions; it imports nothing that takes time."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from medexam.errors import SpecError

if TYPE_CHECKING:
    from medexam.experiments import Finder


@dataclass(frozen=True)
class AnalysisSettings:
    """What is looked for; runs on altered questions are without being asked for."""

    strengths: Annotated[
        bool, typer.Option("--strengths", help="Three runs or more: their order, and which are not separable.")
    ] = False
    item_response: Annotated[
        bool,
        typer.Option(
            "--item-response", help="Three runs or more: which questions are hard, useless or may have a wrong key."
        ),
    ] = False
    cutoff: Annotated[
        str | None,
        typer.Option(
            metavar="YEAR[-MONTH]", help="Compare accuracy on exams before and after this date with the baseline's."
        ),
    ] = None
    overlap: Annotated[
        str | None,
        typer.Option(
            metavar="CORPUS", help="Compare accuracy on questions that share words with this corpus and on the others."
        ),
    ] = None
    overlap_words: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=3, help="With --overlap: how many words in a row must be the same; 13 by default."
        ),
    ] = None

    def finders(self) -> "list[Finder]":
        """Return what finds it; raises `SpecError` for values that cannot be."""
        from medexam_companions.analysis.altered import find_altered
        from medexam_companions.analysis.cutoff import at_cutoff
        from medexam_companions.analysis.item_response import find_item_response
        from medexam_companions.analysis.overlap import find_overlap
        from medexam_companions.analysis.strengths import find_strengths

        if self.overlap_words is not None and self.overlap is None:
            raise SpecError("--overlap-words needs --overlap CORPUS: give both, or leave it out")
        finders: list[Finder | None] = [
            find_strengths if self.strengths else None,
            find_item_response if self.item_response else None,
            at_cutoff(self.cutoff) if self.cutoff else None,
            find_altered,
            partial(find_overlap, self.overlap, self.overlap_words) if self.overlap else None,
        ]
        return [finder for finder in finders if finder is not None]
