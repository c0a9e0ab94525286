"""`medexam data translate`: an exam in another language, by the engines of this framework."""

from typing import Annotated

import typer

from medexam.cli import JsonOption, settings_as_flags
from medexam_companions.translation.settings import TranslateSettings


@settings_as_flags
def translate(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A data set, as `medexam data list` names it.")],
    settings: TranslateSettings,
    as_json: JsonOption = False,
) -> None:
    """Translate a data set in several ways and keep one valid translation a question; continues where it stopped.

    Exit codes: 0 the data set is written, 2 no translation is valid, 3 replies are still pending.

    For example:
        medexam data translate headqa_v1 --from es --to en --limit 30
    """
    from medexam_companions.translation.actions import translate_set

    translate_set(dataset, settings, as_json=as_json)
