"""Which questions `medexam data show` shows."""

from dataclasses import dataclass
from typing import Annotated

from medexam.cli.settings import Setting


@dataclass(frozen=True)
class SampleSettings:
    """Which questions are shown, in the words of `DatasetSpec`."""

    limit: Annotated[int, Setting("How many questions, spread over the exams.")] = 3
    seed: Annotated[int, Setting("Which questions the limit keeps.")] = 0
    split: Annotated[str, Setting("all, train, dev or test.")] = "all"
    years: Annotated[tuple[int, ...], Setting("May be repeated; all by default.", flag="--year")] = ()
    disciplines: Annotated[
        tuple[str, ...], Setting("May be repeated; all of them by default.", flag="--discipline")
    ] = ()
    images: Annotated[str, Setting("all, with or without.")] = "all"
