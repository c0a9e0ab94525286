"""The terminal as the commands write to it: text from servers, data and specs cannot command it."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from medexam.text import visible


class Terminal(Console):
    """A console that shows control characters of what it prints, and never obeys them."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render the segments of what is printed; those that rich made to control the terminal stay as they are."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)
