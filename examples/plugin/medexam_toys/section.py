"""A section of a comparison: how long the replies of each run are, with `medexam compare --reply-words`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from medexam.cli import Setting
from medexam.experiments import ComparisonScope, ComparisonSection, Finder


@dataclass(frozen=True)
class ReplyWords(ComparisonSection):
    """What was found."""

    name = "reply_words"
    means: tuple[float, ...]
    """Words a reply, by run."""

    def sentences(self, names: Sequence[str]) -> list[str]:
        """Write the mean of each run."""
        means = (f"{name} {mean:.1f}" for name, mean in zip(names, self.means, strict=True))
        return [f"Words a reply: {', '.join(means)}."]

    def document(self, keys: Sequence[str]) -> dict[str, Any]:
        """Build the mean by run."""
        return dict(zip(keys, self.means, strict=True))


@dataclass(frozen=True)
class ReplySettings:
    """Its flags; in Python `medexam.compare(..., reply_words=True)`."""

    reply_words: Annotated[bool, Setting("How many words the replies of each run have.")] = False

    def finders(self) -> list[Finder]:
        """Return what finds it, if it is asked for."""
        return [count_reply_words] if self.reply_words else []


def count_reply_words(scope: ComparisonScope) -> ReplyWords:
    """Count the words of the replies to the questions that all runs have scored."""
    counts = [[len((run[item.key].reply or "").split()) for item in scope.items] for run in scope.predictions]
    return ReplyWords(tuple(sum(words) / len(words) for words in counts))
