"""`medexam finetune`: an encoder learns to find the span that answers a question."""

from typing import TYPE_CHECKING

import typer

from medexam.companions.finetuning.settings import FinetuningSettings
from medexam.toolkit.commands import JsonOption, TrackingOption, refuse, settings_as_flags

if TYPE_CHECKING:
    pass


@settings_as_flags
def finetune(
    context: typer.Context,
    settings: FinetuningSettings,
    tracking_uri: TrackingOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune an encoder on spans, into a folder that `span_reader` reads with."""
    if not settings.intermediate:
        refuse(context, {"intermediate_epochs"}, "name the questions to learn from first with --intermediate FILE")
    if settings.validation is None:
        refuse(context, {"answer_tokens"}, "it is for scoring; name the questions to score with --validation FILE")
    from medexam.companions.finetuning.actions import train_encoder

    train_encoder(settings, tracking_uri, as_json=as_json)
