"""The flags of commands that take other harnesses' files of results."""

from dataclasses import dataclass
from typing import Annotated

from medexam.cli.settings import Setting

MOST_UNMATCHED = 0.01


@dataclass(frozen=True)
class ImportSettings:
    """What files of results are matched with, and how."""

    dataset: Annotated[
        str | None,
        Setting("Files of results: the data set whose questions they answer, or a spec with it.", metavar="NAME|SPEC"),
    ] = None
    language: Annotated[str | None, Setting("Files of results: its language; en by default.")] = None
    overrides: Annotated[
        tuple[str, ...],
        Setting("Files of results: a key of the data set, such as dataset.path=a.json.", "--set", metavar="KEY=VALUE"),
    ] = ()
    measure: Annotated[
        str | None,
        Setting("Files of results: the measure, such as acc_norm, or the table's column with a model's answers."),
    ] = None
    most_unmatched: Annotated[
        float,
        Setting(
            "Files of results: the share of samples that may fit no question, or whose answers fit no option (0 to 1).",
            min=0,
            max=1,
        ),
    ] = MOST_UNMATCHED
