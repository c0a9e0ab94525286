"""A section of a comparison: how long the replies of each run are, with `medexam compare --reply-words`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from medexam.experiments import ComparisonScope, ComparisonSection, Finder


@dataclass(frozen=True)
class ReplySettings:
    """Its flags; in Python `medexam.compare(..., reply_words=True)`."""

    reply_words: Annotated[bool, typer.Option("--reply-words", help="How many words the replies of each run have.")] = (
        False
    )

    def finders(self) -> list[Finder]:
        """Return what finds it, if it is asked for."""
        return [count_reply_words] if self.reply_words else []


def count_reply_words(scope: ComparisonScope) -> ComparisonSection:
    """Count the words of the replies to the questions that all runs have scored."""
    counts = [[len((run[item.key].reply or "").split()) for item in scope.items] for run in scope.predictions]
    means = [sum(words) / len(words) for words in counts]
    sentence = ", ".join(f"{name} {mean:.1f}" for name, mean in zip(scope.names, means, strict=True))
    document = dict(zip(scope.run_keys, means, strict=True))
    return ComparisonSection("reply_words", [f"Words a reply: {sentence}."], document)
